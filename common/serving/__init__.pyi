"""A voice and a recognizer over HTTP: requests, their batching and limits, and the studio's page."""

from .app import Service as Service
from .log import start_logging as start_logging
from .models import ServedModels as ServedModels
from .options import Limits as Limits, ServerOptions as ServerOptions
from .server import Server as Server, address_of as address_of, bind as bind, is_loopback as is_loopback
from .sites import Sites as Sites
