// The JavaScript SDK of Stellar, unmodified, against the RPC server whose URL is the first argument, with the
// contract whose file is the second. Writes what it found to stdout, as one JSON document.

import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import {
  Address,
  BASE_FEE,
  Keypair,
  Operation,
  TransactionBuilder,
  contract,
  rpc,
  scValToNative,
} from "@stellar/stellar-sdk";

const [url, wasmFile] = process.argv.slice(2);
const wasm = readFileSync(wasmFile);
const server = new rpc.Server(url, { allowHttp: true });
const owner = Keypair.random();
const root = createHash("sha256").update("memory").digest();
const uri = Buffer.from("file:///memory.json");
const acl = Buffer.alloc(0);
const polls = [];

/** Counts the polls, and does not wait for long between two. */
function sleepStrategy(attempt) {
  polls.push(attempt);
  return 20;
}

/** Simulate, sign, send and poll one operation: the transaction as the network has it. */
async function submit(operation) {
  const account = await server.getAccount(owner.publicKey());
  const built = new TransactionBuilder(account, { fee: BASE_FEE, networkPassphrase: network.passphrase })
    .addOperation(operation)
    .setTimeout(300)
    .build();
  const prepared = await server.prepareTransaction(built);
  prepared.sign(owner);
  const sent = await server.sendTransaction(prepared);
  assert.equal(sent.status, "PENDING");
  assert.equal(sent.hash, prepared.hash().toString("hex"));
  const found = await server.pollTransaction(sent.hash, { attempts: 1000, sleepStrategy });
  assert.equal(found.status, rpc.Api.GetTransactionStatus.SUCCESS);
  assert.equal(found.txHash, sent.hash);
  return found;
}

// What the network is.
const health = await server.getHealth();
assert.equal(health.status, "healthy");
const network = await server.getNetwork();
const version = await server.getVersionInfo();
const latest = await server.getLatestLedger();
assert.equal(latest.sequence >= health.latestLedger, true);
const fees = await server.getFeeStats();
assert.equal(typeof fees.sorobanInclusionFee.p50, "string");

// The friendbot, found by itself, both ways that the SDK has; who exists already is loaded instead.
const funded = await server.fundAddress(owner.publicKey());
assert.equal(funded.status, rpc.Api.GetTransactionStatus.SUCCESS);
const airdropped = Keypair.random();
const fresh = await server.requestAirdrop(airdropped.publicKey());
assert.equal(fresh.sequenceNumber(), (await server.getAccount(airdropped.publicKey())).sequenceNumber());
const again = await server.requestAirdrop(airdropped.publicKey());
assert.equal(again.sequenceNumber(), fresh.sequenceNumber());

// Upload and create.
const uploaded = await submit(Operation.uploadContractWasm({ wasm }));
const wasmHash = scValToNative(uploaded.returnValue);
assert.equal(wasmHash.toString("hex"), createHash("sha256").update(wasm).digest("hex"));
const created = await submit(
  Operation.createCustomContract({
    address: Address.fromString(owner.publicKey()),
    wasmHash,
    salt: createHash("sha256").update("salt").digest(),
  }),
);
const contractId = scValToNative(created.returnValue);
assert.deepEqual(await server.getContractWasmByContractId(contractId), wasm);

// A client made from the spec that the network has.
const client = await contract.Client.from({
  contractId,
  networkPassphrase: network.passphrase,
  rpcUrl: url,
  allowHttp: true,
  publicKey: owner.publicKey(),
  ...contract.basicNodeSigner(owner, network.passphrase),
});
const functions = client.spec.funcs().map((one) => one.name().toString());

const missing = await client.is_anchored({ owner: owner.publicKey() });
assert.equal(missing.result, false);
const none = await client.get_anchor({ owner: owner.publicKey() });
assert.match(none.simulation.error, /Error\(Contract, #1\)/);
assert.equal(none.result.isErr(), true);

const versions = [];
for (let count = 0; count < 2; count += 1) {
  const call = await client.set_anchor({ owner: owner.publicKey(), memory_root: root, uri, acl });
  assert.equal(call.needsNonInvokerSigningBy().length, 0);
  const done = await call.signAndSend();
  assert.equal(done.getTransactionResponse.status, rpc.Api.GetTransactionStatus.SUCCESS);
  versions.push(Number(done.result));
}
const { result: anchor } = await client.get_anchor({ owner: owner.publicKey() });

// Somebody else's anchor: the host wants the other's signature.
const foreign = await client.set_anchor({ owner: airdropped.publicKey(), memory_root: root, uri, acl });
assert.deepEqual(foreign.needsNonInvokerSigningBy(), [airdropped.publicKey()]);
await foreign.signAuthEntries({
  address: airdropped.publicKey(),
  ...contract.basicNodeSigner(airdropped, network.passphrase),
});
const delegated = await foreign.signAndSend();
assert.equal(Number(delegated.result), 1);

// Events, page by page.
const events = [];
let page = await server.getEvents({
  startLedger: latest.sequence,
  filters: [{ type: "contract", contractIds: [contractId] }],
  limit: 2,
});
while (page.events.length > 0) {
  events.push(...page.events);
  page = await server.getEvents({
    filters: [{ type: "contract", contractIds: [contractId] }],
    cursor: page.cursor,
    limit: 2,
  });
}
const topics = [events[0].topic.map((topic) => topic.toXDR("base64"))];
const byTopic = await server.getEvents({
  startLedger: latest.sequence,
  filters: [{ type: "contract", contractIds: [contractId], topics }],
});

// Entries and history.
const data = await server.getContractData(contractId, Address.fromString(owner.publicKey()).toScVal());
const transactions = await server.getTransactions({
  startLedger: latest.sequence,
  pagination: { limit: 200 },
});
const ledgers = await server.getLedgers({ startLedger: latest.sequence, pagination: { limit: 1 } });
const unknown = await server.getTransaction("00".repeat(32));
assert.equal(unknown.status, rpc.Api.GetTransactionStatus.NOT_FOUND);
await assert.rejects(server.getEvents({ startLedger: 1_000_000_000, filters: [] }), { code: -32600 });

process.stdout.write(
  JSON.stringify({
    protocol: version.protocolVersion,
    passphrase: network.passphrase,
    friendbot: network.friendbotUrl,
    owner: owner.publicKey(),
    other: airdropped.publicKey(),
    contract: contractId,
    functions,
    versions,
    anchor: {
      root: anchor.root.toString("hex"),
      uri: anchor.uri.toString(),
      acl: anchor.acl.toString("hex"),
      version: Number(anchor.version),
    },
    events: events.map((event) => ({ ledger: event.ledger, transaction: event.txHash, type: event.type })),
    byTopic: byTopic.events.length,
    liveUntil: data.liveUntilLedgerSeq,
    transactions: transactions.transactions.map((one) => one.txHash),
    ledger: ledgers.ledgers[0].sequence,
    latest: latest.sequence,
    polls: polls.length,
  }),
);
