// Checks a file against what was anchored: hashed in this browser, compared with the owner's history.

const MOST_BYTES = 512 * 1024 * 1024;
const BEGINNING = 256;
const BLOB = /^\{"owner":"(G[A-Z2-7]{55})","records":\[/;
const SEALED = ["age-encryption.org/v1\n", "-----BEGIN AGE ENCRYPTED FILE-----"];
const PAGE = 200;

const { root, network, contract, owner: shown } = document.body.dataset;
const tool = document.getElementById("check-tool");
const drop = document.getElementById("check-drop");
const input = document.getElementById("check-file");
const result = document.getElementById("check-result");
const progress = document.getElementById("check-progress");
const bar = document.getElementById("check-bar");

let turn = 0;
let last = null;

class Unanswered extends Error {}

class NoAddress extends Error {}

/** An element with text and other elements in it; text is never read as HTML. */
function make(name, properties, ...content) {
  const element = document.createElement(name);
  Object.assign(element, properties);
  element.append(...content);
  return element;
}

function address(owner) {
  const query = new URLSearchParams(location.search);
  query.delete("cursor");
  query.delete("owner");
  const text = query.size ? `?${query}` : "";
  return make("a", { href: `${root}/owners/${owner}${text}`, className: "address" }, owner);
}

function list(facts) {
  const rows = facts.map(([name, value]) => make("div", {}, make("dt", {}, name), make("dd", {}, value)));
  return make("dl", { className: "list" }, ...rows);
}

function show(verdict, title, sentences, facts = []) {
  const parts = [make("h3", {}, title), ...sentences.map((one) => make("p", {}, one))];
  if (facts.length) parts.push(list(facts));
  result.replaceChildren(make("div", { className: `verdict ${verdict}` }, ...parts));
  result.dataset.verdict = verdict;
}

function sizeOf(bytes) {
  if (bytes < 1024) return `${bytes} bytes`;
  if (bytes < 1024 * 1024) return `${(bytes / 1024).toFixed(1)} KiB`;
  return `${(bytes / 1024 / 1024).toFixed(1)} MiB`;
}

/** The file's bytes, read piece by piece into the one buffer that WebCrypto wants; null if another came. */
async function read(file, mine) {
  const bytes = new Uint8Array(file.size);
  const reader = file.stream().getReader();
  let place = 0;
  for (;;) {
    const { done, value } = await reader.read();
    if (done) break;
    if (mine !== turn) {
      await reader.cancel();
      return null;
    }
    bytes.set(value, place);
    place += value.length;
    bar.value = (100 * place) / file.size;
  }
  if (place !== file.size) throw new RangeError("the file became shorter");
  return bytes;
}

function hex(buffer) {
  return Array.from(new Uint8Array(buffer), (byte) => byte.toString(16).padStart(2, "0")).join("");
}

const rest = (seconds) => new Promise((resolve) => setTimeout(resolve, 1000 * seconds));

/** A page of the owner's history, or null if nobody of that name anchored here. */
async function historyPage(owner, cursor) {
  const query = new URLSearchParams({ network, contract, limit: PAGE });
  if (cursor) query.set("cursor", cursor);
  const answer = await fetch(`${root}/memory/${owner}/history?${query}`, { cache: "no-store" });
  if (answer.status === 404) return null;
  if (answer.status === 429) {
    await rest(Math.min(60, Number(answer.headers.get("Retry-After")) || 5));
    return historyPage(owner, cursor);
  }
  if (answer.status === 422) throw new NoAddress();
  if (answer.status !== 200) throw new Unanswered(`status ${answer.status}`);
  return answer.json();
}

/** Looks for a root in an owner's history, newest first; null for an owner unknown here. */
async function find(owner, wanted, mine) {
  let cursor = null;
  let latest = null;
  let seen = 0;
  for (;;) {
    const page = await historyPage(owner, cursor);
    if (mine !== turn) return undefined;
    if (page === null) return null;
    latest ??= page.items[0];
    seen += page.items.length;
    const match = page.items.find((item) => item.root === wanted);
    if (match || page.next === null) {
      return { match, latest, seen, gaps: page.gaps, ledger: page.as_of_ledger };
    }
    cursor = page.next;
  }
}

function fileFact(file) {
  return ["File", `${file.name} (${sizeOf(file.size)})`];
}

function rootFact(wanted) {
  return ["SHA-256", make("code", { className: "hash" }, wanted)];
}

function versions(gaps) {
  const texts = gaps
    .slice(0, 10)
    .map(({ first, last: end }) => (first === end ? `${first}` : `${first} to ${end}`));
  return texts.join(", ") + (gaps.length > 10 ? " and others" : "");
}

function judge({ file, owner, wanted }, found) {
  const facts = [fileFact(file), rootFact(wanted), ["Owner", address(owner)]];
  const foreign = shown !== undefined && shown !== owner;
  const told = [];
  if (foreign) {
    told.push(
      "The owner that this file names is not the one of this page. What follows is about the file's own " +
        "owner.",
    );
  }
  const say = (verdict, text, sentence) => {
    const title = foreign ? `Belongs to another owner; ${text}` : text[0].toUpperCase() + text.slice(1);
    show(verdict, title, [...told, sentence], facts);
  };
  if (found === null) {
    say(
      "none",
      "its owner never anchored here",
      "This index knows no anchor of the owner that the file names, so there is nothing to compare it with.",
    );
    return;
  }
  const { match, latest, seen, gaps, ledger } = found;
  facts.push(["As of ledger", `${ledger}`]);
  if (match && match.version === latest.version) {
    facts.push(["Version", `${match.version}, the latest`]);
    say(
      foreign ? "foreign" : "latest",
      "matches the latest version",
      `This is version ${match.version} of this owner's memory, byte for byte as it was anchored.`,
    );
  } else if (match) {
    facts.push(["Version", `${match.version} of ${latest.version}`]);
    say(
      foreign ? "foreign" : "older",
      `matches older version ${match.version}`,
      `The file is genuine, but out of date: it is version ${match.version} byte for byte, ` +
        `and the latest is version ${latest.version}.`,
    );
  } else if (gaps.length) {
    say(
      "none",
      "matches none of the versions known here",
      `Versions ${versions(gaps)} are missing in this index. Unless the file is one of them, ` +
        "it was tampered with, or never anchored.",
    );
  } else {
    say(
      "none",
      "matches no version",
      `None of the ${seen} anchored ${seen === 1 ? "version" : "versions"} of this owner has this SHA-256: ` +
        "the file was tampered with, or never anchored.",
    );
  }
}

async function compare(checked, mine) {
  try {
    const found = await find(checked.owner, checked.wanted, mine);
    if (found !== undefined) judge(checked, found);
  } catch (error) {
    if (mine !== turn) return;
    if (error instanceof NoAddress) {
      showNoBlob(checked.file);
      return;
    }
    show(
      "unknown",
      "The index did not answer",
      ["The file was hashed, but there was nothing to compare it with. Nothing is said about it; try again."],
      [fileFact(checked.file), rootFact(checked.wanted)],
    );
  }
}

function showNoBlob(file) {
  show(
    "none",
    "Not a memory blob",
    ["It does not begin as one. Either it is another kind of file, or its beginning was changed."],
    [fileFact(file)],
  );
}

function beginning(bytes) {
  return new TextDecoder("latin1").decode(bytes.subarray(0, BEGINNING));
}

async function check(file) {
  const mine = ++turn;
  last = null;
  result.replaceChildren();
  delete result.dataset.verdict;
  const facts = [fileFact(file)];
  if (file.size > MOST_BYTES) {
    show(
      "unknown",
      "Too large to check here",
      [
        "Browsers hash a file in one piece, in memory, so at most 512 MiB are read here. On the command line " +
          "sha256sum gives the root, to compare with those of the versions.",
      ],
      facts,
    );
    return;
  }
  bar.value = 0;
  progress.hidden = false;
  try {
    const start = beginning(new Uint8Array(await file.slice(0, BEGINNING).arrayBuffer()));
    if (mine !== turn) return;
    if (SEALED.some((mark) => start.startsWith(mark))) {
      show(
        "sealed",
        "Sealed",
        [
          "This file is encrypted (age-encryption.org/v1). The anchored root is that of the text inside, " +
            "so only its owner or one of its readers can open it and check it.",
        ],
        facts,
      );
      return;
    }
    const header = BLOB.exec(start);
    if (header === null) {
      showNoBlob(file);
      return;
    }
    const bytes = await read(file, mine);
    if (bytes === null) return;
    const wanted = hex(await crypto.subtle.digest("SHA-256", bytes));
    if (mine !== turn) return;
    last = { file: { name: file.name, size: file.size }, owner: header[1], wanted };
    await compare(last, mine);
  } catch {
    if (mine === turn) {
      show(
        "unknown",
        "The file could not be read",
        ["It may be a folder, or it changed while it was read. Nothing is said about it."],
        facts,
      );
    }
  } finally {
    if (mine === turn) progress.hidden = true;
  }
}

function carriesFiles(event) {
  return event.dataTransfer !== null && [...event.dataTransfer.types].includes("Files");
}

function listen() {
  tool.hidden = false;
  input.addEventListener("change", () => {
    const file = input.files[0];
    if (file) check(file);
    input.value = ""; // so that the same file can be chosen again
  });
  // Anywhere on the page: beside the zone, the browser would leave this page and open the file.
  document.addEventListener("dragover", (event) => {
    if (!carriesFiles(event)) return;
    event.preventDefault();
    event.dataTransfer.dropEffect = "copy";
    drop.classList.add("over");
  });
  document.addEventListener("dragleave", (event) => {
    if (event.relatedTarget === null) drop.classList.remove("over");
  });
  document.addEventListener("drop", (event) => {
    if (!carriesFiles(event)) return;
    event.preventDefault();
    drop.classList.remove("over");
    if (event.dataTransfer.files.length === 1) {
      check(event.dataTransfer.files[0]);
    } else {
      turn += 1;
      last = null;
      progress.hidden = true;
      show("unknown", "One file at a time", ["Drop a single file."]);
    }
  });
  document.addEventListener("mycelium:changed", () => {
    if (last !== null) compare(last, turn);
  });
}

if (tool !== null) {
  document.getElementById("check-scriptless").hidden = true;
  if (globalThis.crypto?.subtle) listen();
  else document.getElementById("check-insecure").hidden = false;
}
