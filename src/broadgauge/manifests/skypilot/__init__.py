"""What SkyPilot is given so that an experiment runs on machines of a cloud: task files."""
