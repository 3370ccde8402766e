"""A stand-in for AWS on top of moto."""

import os

# moto and botocore read these when they are imported.
os.environ.update({"MOTO_EC2_LOAD_DEFAULT_AMIS": "false", "AWS_EC2_METADATA_DISABLED": "true", "AWS_SHARED_CREDENTIALS_FILE": os.devnull, "AWS_CONFIG_FILE": os.devnull})
