"""Take the webhooks of benchpool: ``SECRET=... python take_webhook.py PORT``."""

import hashlib
import hmac
import json
import os
import sys
import time
from http.server import BaseHTTPRequestHandler, HTTPServer


class Webhook(BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        timestamp = self.headers["X-Benchpool-Timestamp"]
        signed = timestamp.encode() + b"." + body
        ours = hmac.new(os.environ["SECRET"].encode(), signed, hashlib.sha256).hexdigest()
        genuine = hmac.compare_digest(f"sha256={ours}", self.headers["X-Benchpool-Signature"])
        fresh = abs(time.time() - int(timestamp)) < 300
        for message in json.loads(body)["messages"] if genuine and fresh else []:
            print(message["event"], message["text"], flush=True)
        self.send_response(204 if genuine and fresh else 403)
        self.end_headers()


HTTPServer(("127.0.0.1", int(sys.argv[1])), Webhook).serve_forever()
