// feed.js - one worker that holds the streams of all tabs of a browser. A browser opens six connections to one host,
// and a stream holds one for as long as it is open. Tabs of one job share a stream; streams of more than OPEN_MAX
// jobs take turns. So a page, and what it asks for, always finds a connection.
// A tab posts the address of the stream that it wants, or null, and gets {type, data, id} of each event.
"use strict";

const OPEN_MAX = 4;
const TURN_MS = 1000;
const AGAIN_MS = 3000; // after an answer at which no browser tries again by itself
const streams = new Map(); // by address; the first OPEN_MAX are open

function tell(stream, type, data, id) {
  stream.newest.delete(type); // a tab that comes later gets the newest of each type, in this order
  stream.newest.set(type, { type, data, id });
  for (const tab of stream.tabs) tab.postMessage({ type, data, id });
}

function open(stream) {
  if (stream.source) return;
  const source = new EventSource(stream.url);
  stream.source = source;
  for (const type of ["tick", "heat", "trouble"])
    source.addEventListener(type, (event) => tell(stream, type, event.data, event.lastEventId));
  source.onerror = () => {
    tell(stream, "trouble", "muster web does not answer; this page tries again by itself.");
    if (source.readyState !== EventSource.CLOSED) return;
    setTimeout(() => {
      if (stream.source !== source) return;
      shut(stream);
      arrange();
    }, AGAIN_MS);
  };
}

function shut(stream) {
  if (stream.source) stream.source.close();
  stream.source = null;
}

function arrange() {
  [...streams.values()].forEach((stream, place) => (place < OPEN_MAX ? open(stream) : shut(stream)));
}

function leave(tab) {
  for (const stream of [...streams.values()]) {
    if (!stream.tabs.delete(tab) || stream.tabs.size > 0) continue;
    shut(stream);
    streams.delete(stream.url);
  }
}

function want(tab, url) {
  leave(tab);
  if (url) {
    if (!streams.has(url)) streams.set(url, { url, tabs: new Set(), newest: new Map(), source: null });
    const stream = streams.get(url);
    stream.tabs.add(tab);
    for (const event of stream.newest.values()) tab.postMessage(event);
  }
  arrange();
}

setInterval(() => {
  if (streams.size <= OPEN_MAX) return;
  const [url, stream] = streams.entries().next().value;
  streams.delete(url);
  streams.set(url, stream); // to the end
  arrange();
}, TURN_MS);

function serve(tab) {
  tab.onmessage = (event) => want(tab, event.data);
}
if ("onconnect" in self) self.onconnect = (event) => serve(event.ports[0]);
else serve(self); // a worker of one tab, where a browser has no shared ones
