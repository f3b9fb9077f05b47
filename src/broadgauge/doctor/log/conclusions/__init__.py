"""What do several lines say together? Each module: the rules of one subject."""
