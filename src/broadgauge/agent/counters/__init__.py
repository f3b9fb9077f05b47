"""What has crossed interfaces, queues and adapters of this machine?"""
