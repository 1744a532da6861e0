"""What runs and models tell a user who has to choose how long actions are held."""
