import fc from "fast-check";
import { jsonHeaders, type RawRequest } from "./exchange.ts";

/** Which of a server's sessions a request belongs to: their ids differ from server to server. */
export const SESSIONS = [
  { version: "2025-11-25", level: null },
  { version: "2025-06-18", level: "warning" },
  { version: "2024-11-05", level: "emergency" },
] as const;

export interface GeneratedRequest extends RawRequest {
  readonly headers: Readonly<Record<string, string>>;
  /** An index into SESSIONS, `none`, or `unknown` for a session that does not exist. */
  readonly session: number | "none" | "unknown";
}

/** Mostly the usual value, sometimes another. */
function mostly<T, U>(usual: fc.Arbitrary<T>, odd: fc.Arbitrary<U>, weight = 12): fc.Arbitrary<T | U> {
  return fc.oneof({ weight, arbitrary: usual }, { weight: 1, arbitrary: odd });
}

const json = fc.jsonValue({ maxDepth: 2 });
const word = fc.string({ maxLength: 6 });
const smallInteger = fc.integer({ min: -2, max: 4 });

/** Mostly undefined. */
function rarely<T extends object>(more: fc.Arbitrary<T>, weight = 12): fc.Arbitrary<T | object> {
  return mostly(fc.constant({}), more, weight);
}

const merged = (...parts: readonly fc.Arbitrary<object>[]): fc.Arbitrary<Record<string, unknown>> =>
  fc.tuple(...parts).map((sample) => Object.fromEntries(sample.flatMap((part) => Object.entries(part))));

const base64 = fc.constantFrom("", "aGk=", "aGk", "not base64!");
const annotations = fc.record({ audience: fc.constant(["user"]), priority: fc.constantFrom(0.5, 3) }, { requiredKeys: [] });
const decoration = fc.record({ annotations: mostly(annotations, json, 3), _meta: mostly(fc.constant({ a: 1 }), json, 3), extra: json });

/** MCP's content blocks, and values that only look like one. */
export const block: fc.Arbitrary<Record<string, unknown>> = merged(
  fc.oneof(
    fc.record({ type: fc.constant("text"), text: mostly(word, json) }),
    fc.record({ type: fc.constantFrom("image", "audio"), data: mostly(base64, json), mimeType: mostly(fc.constant("image/png"), json) }),
    fc.record({ type: fc.constant("resource_link"), uri: mostly(word, json), name: mostly(word, json) }),
    fc.record({
      type: fc.constant("resource"),
      resource: mostly(
        fc.record({ uri: mostly(word, json), text: mostly(word, json), blob: base64, mimeType: word }, { requiredKeys: ["uri"] }),
        json,
      ),
    }),
    fc.record({ type: fc.constantFrom("video", "tool_use") }),
  ),
  rarely(fc.record({ description: json, title: json, size: json, icons: json, mimeType: json }, { requiredKeys: [] }), 5),
  rarely(decoration, 3),
);

const wholeResult = fc.record(
  {
    content: mostly(fc.array(block, { maxLength: 2 }), json),
    isError: mostly(fc.boolean(), json),
    structuredContent: mostly(fc.oneof(fc.record({ id: word, n: smallInteger }), fc.dictionary(word, json, { maxKeys: 2 })), json),
  },
  { requiredKeys: ["content"] },
);

const line = fc.record({ sku: mostly(word, json), count: mostly(smallInteger, json) }, { requiredKeys: ["sku"] });
const order = merged(
  fc.record({ id: mostly(word, json), lines: mostly(fc.array(line, { maxLength: 4 }), json) }),
  rarely(fc.record({ priority: mostly(fc.constantFrom("low", "high"), json), note: mostly(word, json) }, { requiredKeys: [] }), 1),
  rarely(fc.dictionary(mostly(word, fc.constant("__proto__"), 1), json, { maxKeys: 2, noNullPrototype: false })),
);

const returned = fc.oneof(json, word, block, fc.array(block, { maxLength: 3 }), wholeResult, order, fc.array(mostly(smallInteger, json)));

const said = fc.oneof(
  fc.record({ level: fc.constantFrom("debug", "info", "warning", "error", "emergency"), data: json }),
  fc.record({ done: fc.double({ noNaN: true, noDefaultInfinity: true }), total: smallInteger, message: word }, { requiredKeys: ["done"] }),
);

/** Arguments that match the tool's schema, or nearly. */
function argumentsFor(name: string): fc.Arbitrary<object> {
  if (name.startsWith("order")) return order;
  if (name.startsWith("speak")) return fc.record({ said: mostly(fc.array(said, { maxLength: 4 }), json) });
  if (name.includes("checked")) return fc.record({ n: mostly(smallInteger, json) });
  if (name === "sum") return fc.record({ numbers: mostly(fc.array(smallInteger), json) }, { requiredKeys: [] });
  if (name === "fail") return fc.record({ message: mostly(word, json) });
  if (name === "mirrored") return fc.record({ region: mostly(fc.constantFrom("eu", "ü"), json) });
  if (name === "echo" || name === "text") return fc.dictionary(mostly(word, fc.constant("__proto__")), json, { maxKeys: 3 });
  return fc.record({ value: returned });
}

function toolCall(names: readonly string[]): fc.Arbitrary<{ readonly name?: unknown; readonly arguments?: unknown }> {
  const fitting = fc.oneof(...names.map((name) => fc.record({ name: fc.constant(name), arguments: argumentsFor(name) })));
  const strange = fc.oneof(word, fc.constantFrom(...names, "constructor", "__proto__"), json);
  const misfit = fc.record({ name: strange, arguments: fc.oneof(order, json) }, { requiredKeys: [] });
  return mostly(fitting, misfit);
}

const META = "io.modelcontextprotocol";
const MODERN = "2026-07-28";
const LEGACY = ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05", "2024-10-07"];

const progress = fc.record({ progressToken: mostly(fc.oneof(fc.integer(), word), json, 30) }, { requiredKeys: [] });
const oddMeta = rarely(
  fc.record({ traceparent: json, baggage: json, [`${META}/related-task`]: json, other: json }, { requiredKeys: [] }),
  20,
);

const envelope = merged(
  withGaps(
    fc.record({
      [`${META}/protocolVersion`]: mostly(fc.constant(MODERN), fc.oneof(fc.constantFrom(...LEGACY, "2030-01-01"), json), 20),
      [`${META}/clientInfo`]: mostly(merged(fc.record({ name: word, version: word }), rarely(fc.record({ title: word, odd: json }))), json),
      [`${META}/clientCapabilities`]: mostly(fc.constantFrom({}, { sampling: {} }, { elicitation: { form: {} } }), json),
    }),
  ),
  rarely(fc.record({ [`${META}/logLevel`]: mostly(fc.constantFrom("debug", "info", "error"), json) }), 1),
);

/** Sometimes leaves out one of the keys. */
function withGaps(whole: fc.Arbitrary<object>): fc.Arbitrary<object> {
  return fc.tuple(whole, mostly(fc.constant(-1), fc.nat(2), 10)).map(([value, gap]) => {
    return Object.fromEntries(Object.entries(value).filter((_, index) => index !== gap));
  });
}

const method = mostly(
  fc.constantFrom("tools/call", "tools/call", "tools/call", "tools/call", "tools/list"),
  fc.constantFrom("ping", "tools/none", "prompts/list", "logging/setLevel"),
);

interface Call {
  readonly method: string;
  readonly name: unknown;
  readonly body: Record<string, unknown>;
}

/** A JSON-RPC request with that `_meta`, mostly well-formed. */
function call(names: readonly string[], meta: fc.Arbitrary<object>): fc.Arbitrary<Call> {
  const params = fc.record({
    call: toolCall(names),
    meta: mostly(meta, json, 50),
    more: rarely(fc.oneof(fc.constantFrom({ cursor: "x" }, { task: { ttl: 5 } }), fc.dictionary(word, json, { maxKeys: 1 })), 30),
  });
  return fc
    .record({
      head: fc.record({
        jsonrpc: mostly(fc.constant("2.0"), json, 60),
        id: mostly(fc.oneof(fc.integer(), word, fc.constantFrom(0, "0", "")), json, 40),
      }),
      method,
      params,
      surplus: rarely(fc.dictionary(word, json, { maxKeys: 1 }), 30),
      hasParams: mostly(fc.constant(true), fc.constant(false), 40),
    })
    .map((sample) => {
      const { call: own, meta: _meta, more } = sample.params;
      const hasMeta = typeof _meta !== "object" || _meta === null || Object.keys(_meta).length > 0;
      const whole = { ...(sample.method === "tools/call" && own), ...more, ...(hasMeta && { _meta }) };
      const body = { ...sample.head, method: sample.method, ...(sample.hasParams && { params: whole }), ...sample.surplus };
      return { method: sample.method, name: sample.method === "tools/call" ? own.name : undefined, body };
    });
}

const plainHeaders = fc.record({
  accept: mostly(
    fc.constant(jsonHeaders.accept),
    fc.constantFrom("", "*/*", "application/json", "text/event-stream,application/json;q=0.1", "Application/JSON, text/event-stream"),
    25,
  ),
  "content-type": mostly(
    fc.constant("application/json"),
    fc.constantFrom("", "text/plain", "application/json; charset=utf-8", "APPLICATION/JSON", "application/jsonp", "application/json x"),
    25,
  ),
});

/** Without the headers whose value is empty. */
function present(headers: Readonly<Record<string, string>>): Record<string, string> {
  return Object.fromEntries(Object.entries(headers).filter(([, value]) => value !== ""));
}

/** A header allows fewer characters than a name. */
function asHeader(value: unknown): string {
  return value === undefined ? "" : String(value).replaceAll(/[^\x21-\x7e]/g, "");
}

/** Requests of the 2025 revisions, with or without a session. */
const legacyRequest = (names: readonly string[]): fc.Arbitrary<GeneratedRequest> =>
  fc
    .record({
      call: call(names, merged(progress, oddMeta)),
      headers: plainHeaders,
      version: mostly(fc.constantFrom("", "", ...LEGACY), fc.constantFrom(MODERN, "2030-01-01", "x"), 20),
      session: mostly(fc.oneof(fc.constant("none" as const), fc.nat(SESSIONS.length - 1)), fc.constant("unknown" as const), 20),
      mirrored: mostly(fc.constant(""), fc.constantFrom("tools/call", "tools/list"), 20),
    })
    .map(({ call: { body }, headers, version, session, mirrored }) => ({
      headers: present({ ...headers, "mcp-protocol-version": version, "mcp-method": mirrored }),
      body,
      session,
    }));

/** Requests of the 2026 revision: valid and invalid envelopes, matching and other headers. */
const modernRequest = (names: readonly string[]): fc.Arbitrary<GeneratedRequest> =>
  fc
    .record({
      call: call(names, merged(progress, oddMeta, envelope)),
      headers: plainHeaders,
      version: mostly(fc.constant(MODERN), fc.constantFrom("", "2025-11-25", "2030-01-01"), 20),
      wrongMethod: mostly(fc.constant(null), fc.constantFrom("", "tools/list", "ping"), 20),
      wrongName: mostly(fc.constant(null), fc.constantFrom("", "text", "=?base64?dGV4dA==?="), 20),
      region: mostly(fc.constant(""), fc.constantFrom("eu", "=?base64?ZXU=?="), 1),
      session: mostly(fc.constant("none" as const), fc.constantFrom("unknown" as const, 0), 20),
    })
    .map(({ call: { method: called, name, body }, headers, version, wrongMethod, wrongName, region, session }) => ({
      headers: present({
        ...headers,
        "mcp-protocol-version": version,
        "mcp-method": wrongMethod ?? called,
        "mcp-name": wrongName ?? asHeader(name),
        "mcp-param-region": region,
      }),
      body,
      session,
    }));

/** Bodies that are not a single request: batches, notifications, responses, other JSON, and text that is not JSON. */
const oddRequest = (names: readonly string[]): fc.Arbitrary<GeneratedRequest> =>
  fc.record({
    headers: plainHeaders.map(present),
    body: fc.oneof(
      json,
      fc.constantFrom("", "{", "nul", "{}{}", '"', "[1"),
      fc.array(call(names, merged(progress)), { maxLength: 1 }).map((calls) => calls.map(({ body }) => body)),
      fc.constantFrom(
        { jsonrpc: "2.0", method: "notifications/initialized" },
        { jsonrpc: "2.0", method: "tools/call", params: { name: "text" } },
        { jsonrpc: "2.0", id: 5, result: {} },
      ),
    ),
    session: fc.constantFrom("none" as const, 0, "unknown" as const),
  });

/** Requests to a server with tools of these names, of all revisions and of none; about half of them are valid. */
export function anyRequest(names: readonly string[]): fc.Arbitrary<GeneratedRequest> {
  return fc.oneof(
    { weight: 10, arbitrary: legacyRequest(names) },
    { weight: 10, arbitrary: modernRequest(names) },
    { weight: 2, arbitrary: oddRequest(names) },
  );
}
