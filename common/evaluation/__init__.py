"""How good a voice is: error rates, distance from recordings, speed, and a report of them."""
