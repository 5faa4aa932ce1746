"""A voice and a recognizer over HTTP: requests, their batching and limits, and the studio's page."""
