"""Where random options lead: the places they visit, and what they meet there."""
