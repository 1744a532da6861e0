"""Where random options lead: the places that they visit, and what they meet there."""
