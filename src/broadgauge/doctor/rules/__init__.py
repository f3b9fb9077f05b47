"""What is known of lines that NCCL and its neighbours print: data, one file a subject."""
