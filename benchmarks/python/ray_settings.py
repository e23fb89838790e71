"""Ray's settings: clusters of this machine, with a token of their own. Import it before ray."""
import os
import secrets

os.environ["RAY_AUTH_MODE"] = "token"
os.environ["RAY_AUTH_TOKEN"] = secrets.token_hex(32)
os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
HEAD = {"include_dashboard": False, "object_store_memory": 2 * 10**9}
QUIET = {"log_to_driver": False, "configure_logging": False}
