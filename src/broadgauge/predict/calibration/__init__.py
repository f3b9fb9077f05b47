"""What do a user's own measured steps say of their system?"""
