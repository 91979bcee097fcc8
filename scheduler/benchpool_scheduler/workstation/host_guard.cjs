// Loaded by Node before the proxy (`node --require`): a request for a foreign host is refused.
//
// A page of another site whose name was made to lead here (DNS rebinding) would else reach Hub,
// pool and notebook servers from the browser of whoever opened it. BENCHPOOL_HOSTS holds the names
// that are ours, separated by spaces; one that begins with a point stands for all below it.
// Addresses and names below `localhost` cannot be made to lead elsewhere, and are always taken.
'use strict';
const http = require('node:http');
const https = require('node:https');
const net = require('node:net');

const ours = (process.env.BENCHPOOL_HOSTS || '').toLowerCase().split(' ').filter(Boolean);

function isOurs(header) {
  const name = (header || '').toLowerCase().replace(/:\d+$/, '').replace(/\.$/, '');
  if (net.isIP(name.replace(/^\[(.*)\]$/, '$1')) !== 0) {
    return true;
  }
  return ['localhost', '.localhost', ...ours].some(one =>
    one.startsWith('.') ? name.endsWith(one) : name === one
  );
}

// No word of the request is repeated: it may hold anything.
const SENTENCE =
  'This address is not one of this Hub: come by the address that benchpool up printed, or start ' +
  'it with --public-host and the name that you came by.\n';
const STATUS = 421;

function refuse(event, request, answer) {
  if (event === 'request') {
    answer.writeHead(STATUS, { 'Content-Type': 'text/plain; charset=utf-8', Connection: 'close' });
    answer.end(SENTENCE);
    return;
  }
  answer.end(
    `HTTP/1.1 ${STATUS} Misdirected Request\r\nContent-Type: text/plain; charset=utf-8\r\n` +
      `Content-Length: ${Buffer.byteLength(SENTENCE)}\r\nConnection: close\r\n\r\n${SENTENCE}`
  );
}

for (const kind of [http.Server, https.Server]) {
  const emit = kind.prototype.emit;
  kind.prototype.emit = function (event, request, answer, ...rest) {
    const guarded = event === 'request' || event === 'upgrade';
    if (guarded && !isOurs(request.headers.host)) {
      refuse(event, request, answer);
      return true;
    }
    return emit.call(this, event, request, answer, ...rest);
  };
}
