"""What do an article's own figures say of its sentences? One module an article."""
