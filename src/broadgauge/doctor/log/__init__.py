"""What do the logs of a training job say? One streaming pass, whoever wrote them."""
