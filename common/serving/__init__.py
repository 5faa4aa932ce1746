"""A voice and a recognizer over HTTP: requests, their batching and limits, and the studio's page."""

from common.serving.app import Service
from common.serving.limits import Limits
from common.serving.models import ServedModels
from common.serving.run import Server, address_of, bind, is_loopback
