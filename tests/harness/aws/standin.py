#!/usr/bin/env python3
"""standin.py [--port N] [--folder DIR]: a stand-in for EBS direct APIs, EC2, SSM, STS, KMS and IAM on loopback, as AWS documents them.

Prints `url=http://127.0.0.1:PORT` and serves until it is stopped. EBS, machine images and snapshots are ours (`ebs.py`, `ec2.py`); everything else is moto's.
Blocks lie in DIR, or in a temporary folder. A test drives it below `/_standin/`:

    GET  state                      all snapshots, images and counts of requests, as JSON
    POST knobs {NAME: VALUE}        see world.Knobs
    POST keys {account, policies, token}   a new access key
    GET  credentials                a new key with a token, as the endpoint of a container gives it
    GET  snapshots/ID/raw           the volume of a snapshot
    POST calm                       turn all knobs back
    POST snapshot, image {id, NAME: VALUE}   change what is known of one
    POST counts                     forget the counts of requests
    POST reset                      forget everything
"""

import argparse
import functools
import hashlib
import http.server
import io
import json
import shutil
import signal
import socket
import sys
import tempfile
import threading
import traceback
import urllib.parse

from harness.aws import auth, ebs, ec2, needs, query
from harness.aws.world import ACCOUNT, Knobs, Refused, World

LARGEST = 64 << 20


class Request:
    """One request. `subject` is its subject from the path, `account` the account of the signing key."""

    def __init__(self, method, target, headers, body):
        self.method, self.headers, self.body = method, headers, body
        self.target, _, text = target.partition("?")
        self.path = urllib.parse.unquote(self.target)
        self.pairs = urllib.parse.parse_qsl(text, keep_blank_values=True)
        self.query, self.region, self.service, self.account = dict(self.pairs), "us-east-1", "", ACCOUNT
        self.action, self.subject = ebs.route(method, self.path)
        if self.action:
            self.service = "ebs"
        elif target := headers.get("x-amz-target"):
            self.action = target.rpartition(".")[2]
        else:
            self.action = self.form.get("Action", "")

    @functools.cached_property
    def digest(self):
        return hashlib.sha256(self.body).digest()

    @functools.cached_property
    def form(self):
        return dict(urllib.parse.parse_qsl(self.body.decode(errors="replace"), keep_blank_values=True))

    @functools.cached_property
    def json(self):
        try:
            return json.loads(self.body or b"{}")
        except ValueError:
            return {}


class Moto:
    """The rest of AWS."""

    def __init__(self):
        from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
        self.app, self.lock = DomainDispatcherApplication(create_backend_app), threading.Lock()

    def serve(self, request):
        environ = {
            "REQUEST_METHOD": request.method, "SCRIPT_NAME": "", "PATH_INFO": request.path, "QUERY_STRING": urllib.parse.urlencode(request.pairs),
            "RAW_URI": request.target, "CONTENT_TYPE": request.headers.get("content-type", ""), "CONTENT_LENGTH": str(len(request.body)), "SERVER_NAME": "127.0.0.1", "SERVER_PORT": "80",
            "SERVER_PROTOCOL": "HTTP/1.1", "wsgi.version": (1, 0), "wsgi.url_scheme": "http", "wsgi.input": io.BytesIO(request.body), "wsgi.errors": sys.stderr,
            "wsgi.multithread": True, "wsgi.multiprocess": False, "wsgi.run_once": False,
        }
        environ |= {"HTTP_" + name.upper().replace("-", "_"): value for name, value in request.headers.items() if name not in ("content-type", "content-length")}
        environ["HTTP_X_MOTO_ACCOUNT_ID"] = request.account
        said = {}
        with self.lock:
            body = b"".join(self.app(environ, lambda status, headers, _=None: said.update(status=int(status.split()[0]), headers=dict(headers))))
        return said["status"], said["headers"], body

    def by_default(self, request):
        """Whether new volumes are encrypted by default."""
        from moto.ec2.models import ec2_backends
        return ec2_backends[request.account][request.region].ebs_encryption_by_default

    def default(self, request):
        """The key of EBS: the account's choice, or AWS's own."""
        from moto.ec2.models import ec2_backends
        backend = ec2_backends[request.account][request.region]
        with self.lock:
            return backend.default_kms_key_id or backend._create_default_encryption_key()

    def there(self, request, key):
        from moto.kms.models import kms_backends
        with self.lock:
            backend = kms_backends[request.account][request.region]
            try:
                found = backend.describe_key(backend.any_id_to_key_id(key))
            except Exception:  # Whatever moto raises for a key that it does not have.
                return False
            return found.enabled

    def launched(self, request, image):
        """Has moto know an image that a machine is to be started from."""
        from moto.ec2.models import ec2_backends
        from moto.ec2.models.amis import Ami
        backend = ec2_backends[request.account][request.region]
        with self.lock:
            backend.amis.setdefault(image.id, Ami(backend, image.id, name=image.fields["Name"], architecture=image.fields["Architecture"], virtualization_type="hvm", region_name=f"{request.region}a"))


class Front:
    """Where each request goes."""

    def __init__(self, folder):
        self.folder, self.moto, self.fresh, self.requests = folder, Moto(), 0, 0
        self.reset()

    def reset(self):
        from moto.moto_api._internal.models import moto_api_backend
        old = f"{self.folder}/{self.fresh}"
        self.fresh += 1
        self.world = World(f"{self.folder}/{self.fresh}")
        self.keys, self.needs = auth.Keys(self.world), needs.Needs(self.world)
        self.ebs, self.ec2 = ebs.Ebs(self.world, self.moto), ec2.Ec2(self.world, self.moto)
        with self.moto.lock:
            moto_api_backend.reset()
        shutil.rmtree(old, ignore_errors=True)

    def serve(self, request):
        self.requests += 1
        number = f"00000000-0000-4000-8000-{self.requests:012x}"
        try:
            if request.path.startswith("/_standin/"):
                return self.control(request)
            status, headers, body = self.aws(request, number)
        except Refused as error:
            status, headers, body = refusal(request.service, error, number)
        except Exception:
            traceback.print_exc()
            status, headers, body = refusal(request.service, Refused(500, "InternalServerException", "The stand-in failed."), number)
        return status, headers | {"x-amzn-RequestId": number}, body

    def aws(self, request, number):
        if scope := auth.AUTHORIZATION.match(request.headers.get("authorization", "")):
            request.service = scope[4]
        key = self.keys.check(request)
        request.account = key.account
        self.world.admit(request.service, request.action)
        if self.world.knobs.auth:
            auth.require(key, request.service, self.needs.of(request))
        if request.service == "ebs":
            if not request.action:
                raise Refused(404, "UnknownOperationException", request.path)
            return self.ebs.serve(request.action, request)
        if request.service == "ec2":
            return self.to_ec2(request, number)
        if (request.service, request.action) == ("sts", "GetCallerIdentity"):
            return 200, {"Content-Type": "text/xml"}, caller(key, number)
        if (request.service, request.action) == ("ssm", "PutParameter") and not self.parameter_holds(request):
            # AWS looks at the image later, and by then has said that all is well.
            return 200, {"Content-Type": "application/x-amz-json-1.1"}, b'{"Tier":"Standard","Version":1}'
        return self.moto.serve(request)

    def to_ec2(self, request, number):
        if request.action in list(self.ec2.actions) + list(self.ec2.tag_actions):
            params = query.parse(request.action, request.form)
            with self.world.lock:
                if mine := self.ec2.mine(request.action, params):
                    return 200, {"Content-Type": "text/xml;charset=UTF-8"}, query.answer(request.action, mine(request, params), number)
        if request.action == "RunInstances":
            with self.world.lock:
                image = self.ec2.image(request, request.form.get("ImageId", ""), owned=False)
            if image.state != "available":
                raise Refused(400, "InvalidAMIID.Unavailable", f"The image {image.id} is {image.state}.")
            self.moto.launched(request, image)
        status, headers, body = self.moto.serve(request)
        # AWS answers a dry run with 412.
        return 412 if status == 400 and b"<Code>DryRunOperation</Code>" in body else status, headers, body

    def parameter_holds(self, request):
        asked = request.json
        if asked.get("DataType", "text") != "aws:ec2:image":
            return True
        value = asked.get("Value", "")
        if not value.startswith("ami-"):
            raise Refused(400, "ValidationException", f"The value of a parameter of aws:ec2:image is not an image: {value}")
        image = self.world.images.get(value)
        visible = image and image.region == request.region and (image.account == request.account or self.ec2.may_launch(image, request.account))
        return bool(visible) and image.state == "available"

    def control(self, request):
        what = request.path.removeprefix("/_standin/")
        if what == "state":
            return answer(self.world.dump())
        if what.startswith("snapshots/") and what.endswith("/raw"):
            one = self.world.snapshots[what.split("/")[1]]
            return 200, {"Content-Type": "application/octet-stream", "Content-Length": str(one.size << 30)}, self.world.read_back(one)
        if what == "credentials":
            key = self.keys.make(token=True)
            return answer({"AccessKeyId": key.name, "SecretAccessKey": key.secret, "Token": key.token, "Expiration": "2099-01-01T00:00:00Z"})
        if request.method != "POST":
            raise Refused(404, "NotFound", what)
        if what == "knobs":
            self.world.knobs.turn(request.json)
        elif what == "keys":
            asked = request.json
            key = self.keys.make(asked.get("account", ACCOUNT), asked.get("policies"), asked.get("token", False))
            return answer({"AccessKeyId": key.name, "SecretAccessKey": key.secret, "Token": key.token, "Arn": key.arn})
        elif what == "counts":
            with self.world.lock:
                self.world.counts.clear(), self.world.refused.clear(), self.world.log.clear(), self.world.nth.clear()
        elif what == "calm":
            self.world.knobs = Knobs()
        elif what in ("snapshot", "image"):
            with self.world.lock:
                vars((self.world.snapshots | self.world.images)[request.json.pop("id")]).update(request.json)
        elif what == "reset":
            self.reset()
        else:
            raise Refused(404, "NotFound", what)
        return answer({})


def answer(value):
    return 200, {"Content-Type": "application/json"}, json.dumps(value, default=str).encode()


def caller(key, number):
    result = f"<Arn>{key.arn or f'arn:aws:iam::{key.account}:root'}</Arn><UserId>AIDASTANDIN</UserId><Account>{key.account}</Account>"
    return (f'<GetCallerIdentityResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><GetCallerIdentityResult>{result}</GetCallerIdentityResult>'
            f"<ResponseMetadata><RequestId>{number}</RequestId></ResponseMetadata></GetCallerIdentityResponse>").encode()


def refusal(service, error, number):
    """A refusal in the protocol of each service."""
    headers = {"Retry-After": str(error.after)} if error.after is not None else {}
    if service == "ec2":
        return error.status, headers | {"Content-Type": "text/xml;charset=UTF-8"}, query.error(error.code, error.message, number)
    if service in ("sts", "iam"):
        text = f"<ErrorResponse><Error><Type>Sender</Type><Code>{error.code}</Code><Message>{error.message}</Message></Error><RequestId>{number}</RequestId></ErrorResponse>"
        return error.status, headers | {"Content-Type": "text/xml"}, text.encode()
    headers |= {"Content-Type": "application/json", "x-amzn-ErrorType": error.code}
    if service == "ebs":
        body = {"Message": error.message} | ({"Reason": error.reason} if error.reason else {})
    else:
        body = {"__type": error.code, "message": error.message}
    return error.status, headers, json.dumps(body).encode()


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = 1 << 16
    disable_nagle_algorithm = True

    def serve(self):
        length = int(self.headers.get("Content-Length") or 0)
        if length > LARGEST or self.headers.get("Transfer-Encoding"):
            self.close_connection = True
            return self.send(413, {}, b"")
        body = self.rfile.read(length)
        if len(body) < length:
            self.close_connection = True
            return None
        headers = {name.lower(): value for name, value in self.headers.items()}
        return self.send(*self.server.front.serve(Request(self.command, self.path, headers, body)))

    do_GET = do_PUT = do_POST = do_DELETE = serve

    def send(self, status, headers, body):
        self.send_response_only(status)
        if isinstance(body, bytes):
            headers["Content-Length"] = str(len(body))
            body = [body]
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        for part in body:
            self.wfile.write(part)
        self.wfile.flush()

    def log_message(self, *_):
        pass


class Server(http.server.ThreadingHTTPServer):
    daemon_threads, request_queue_size = True, 256

    def handle_error(self, request, address):
        # Clients that are killed, and those that a proxy cuts off, are part of the tests.
        if not isinstance(sys.exc_info()[1], OSError):
            super().handle_error(request, address)

    def get_request(self):
        connection, address = super().get_request()
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return connection, address


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--folder")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="standin-") as folder:
        server = Server(("127.0.0.1", args.port), Handler)
        server.front = Front(args.folder or folder)
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
        print(f"url=http://127.0.0.1:{server.server_address[1]}", flush=True)
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            pass


if __name__ == "__main__":
    main()
