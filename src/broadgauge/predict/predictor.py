"""How long does a step of each of these trainings take? The one entrance of this room."""
