// Keeps an open page as fresh as the index: asks for it again, with its ETag, and takes over what changed.

const SECONDS = 4;
const MOST_SECONDS = 60;
const PATIENCE = 20;

const body = document.body;
const began = performance.now();
const loadedAt = Number(body.dataset.now);

let etag = body.dataset.etag;
let failures = 0;
let timer = 0;
let asking = false;

/** Seconds in the largest unit that still says enough; the server writes them alike. */
function duration(seconds) {
  const whole = Math.max(0, Math.floor(seconds));
  if (whole < 60) return `${whole} s`;
  if (whole < 3600) return `${Math.floor(whole / 60)} min`;
  if (whole < 48 * 3600) return `${Math.floor(whole / 3600)} h`;
  return `${Math.floor(whole / 86400)} days`;
}

function digits(number) {
  return String(number).replace(/\B(?=(\d{3})+$)/g, "\u202f");
}

/** The server's clock, not this machine's, which may be wrong. */
function now() {
  return loadedAt + (performance.now() - began) / 1000;
}

function put(element, text) {
  if (element && element.textContent !== text) element.textContent = text;
}

function showAges() {
  for (const element of document.querySelectorAll("[data-since]")) {
    put(element, `${duration(now() - Number(element.dataset.since))} ago`);
  }
}

function showStanding(headers) {
  const section = document.getElementById("freshness");
  const ledger = headers.get("As-Of-Ledger");
  if (!section || ledger === null) return;
  put(document.getElementById("as-of"), digits(ledger));
  put(document.getElementById("lag"), duration(Number(headers.get("Lag"))));
  const followed = headers.get("Followed");
  section.dataset.followed = followed;
  for (const one of section.querySelectorAll(".standing")) one.hidden = !one.classList.contains(followed);
}

function say(text) {
  put(document.getElementById("refreshing"), text);
}

/** Where the focus is, in words that fit the new content as well. */
function focused(region) {
  const element = document.activeElement;
  return element && region.contains(element) ? element.getAttribute("href") : null;
}

function takeOver(text) {
  const page = new DOMParser().parseFromString(text, "text/html");
  for (const region of document.querySelectorAll("[data-live]")) {
    const fresh = page.getElementById(region.id);
    if (!fresh) continue;
    const href = focused(region);
    region.replaceChildren(...document.importNode(fresh, true).childNodes);
    if (href !== null) {
      for (const link of region.querySelectorAll("a[href]")) {
        if (link.getAttribute("href") === href) {
          link.focus({ preventScroll: true });
          break;
        }
      }
    }
  }
  etag = page.body.dataset.etag;
  say(`New anchors came in at ${new Date().toLocaleTimeString()}.`);
  document.dispatchEvent(new CustomEvent("mycelium:changed"));
}

async function look() {
  const headers = { Accept: "text/html" };
  if (etag) headers["If-None-Match"] = etag;
  const answer = await fetch(location.href, {
    headers,
    cache: "no-store",
    signal: AbortSignal.timeout(PATIENCE * 1000),
  });
  if (answer.status === 200) {
    if ("waiting" in body.dataset) {
      location.reload();
      return;
    }
    const text = await answer.text();
    takeOver(text);
    showStanding(answer.headers);
  } else if (answer.status === 304) {
    showStanding(answer.headers);
  } else {
    throw new Error(`status ${answer.status}`);
  }
}

async function round() {
  if (asking) return;
  asking = true;
  try {
    await look();
    if (failures) say("");
    failures = 0;
  } catch {
    failures += 1;
    if (etag && failures > 1) {
      say("The index does not answer: what is shown may be out of date. Trying again.");
    }
  }
  asking = false;
  showAges();
  wait();
}

function wait() {
  clearTimeout(timer);
  if (document.hidden) return;
  timer = setTimeout(round, 1000 * Math.min(MOST_SECONDS, SECONDS * 2 ** failures));
}

document.addEventListener("visibilitychange", () => {
  if (document.hidden) clearTimeout(timer);
  else round();
});

if (etag || "waiting" in body.dataset) wait();
