"""What makes a training go on exactly: the state of an agent and of its environments."""
