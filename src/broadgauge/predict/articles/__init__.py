"""Do predictions agree with what five articles on networks of training published?"""
