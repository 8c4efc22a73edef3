import { isObject, type Json, type JsonObject } from "@aenv/contract";
import { type IncomingMessage, type TaskState, taskStates } from "../agent/task.ts";
import type { Part } from "../definition/agent.ts";
import { A2aError, wrongField } from "./error.ts";

// Reads requests. Each field has two spellings, as in JSON of protocol buffers; null and empty text count as absent. Fields that are not
// known are ignored.

type Fields = Readonly<Record<string, unknown>>;

export function fieldsOf(value: unknown, name: string): Fields {
  if (isObject(value)) return value;
  throw wrongField(name, "must be an object");
}

/** The field in either spelling: `historyLength` or `history_length`. */
export function field(fields: Fields, name: string): unknown {
  const value = fields[name] ?? fields[name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)];
  return value === null ? undefined : value;
}

export function textField(fields: Fields, name: string, at = name): string | undefined {
  const value = field(fields, name);
  if (value === undefined || value === "") return undefined;
  if (typeof value !== "string") throw wrongField(at, "must be a text");
  return value;
}

export function requiredText(fields: Fields, name: string, at = name): string {
  const value = textField(fields, name, at);
  if (value === undefined) throw wrongField(at, "is required");
  return value;
}

/** An integer, which a query has as text. */
export function integerField(fields: Fields, name: string, least: number, most = Number.MAX_SAFE_INTEGER): number | undefined {
  const value = field(fields, name);
  if (value === undefined) return undefined;
  const number = typeof value === "string" && /^-?\d{1,15}$/.test(value) ? Number(value) : value;
  if (typeof number === "number" && Number.isInteger(number) && number >= least && number <= most) return number;
  throw wrongField(name, `must be an integer from ${least}${most === Number.MAX_SAFE_INTEGER ? "" : ` to ${most}`}`);
}

export function booleanField(fields: Fields, name: string): boolean | undefined {
  const value = field(fields, name);
  if (value === undefined || typeof value === "boolean") return value;
  if (value === "true" || value === "false") return value === "true";
  throw wrongField(name, "must be true or false");
}

export function stateField(fields: Fields, name: string): TaskState | undefined {
  const value = textField(fields, name);
  if (value === undefined || value === "TASK_STATE_UNSPECIFIED") return undefined;
  const found = taskStates.find((state) => stateName(state) === value);
  if (found === undefined) throw wrongField(name, "is not a state of tasks");
  return found;
}

/** The state's name in protocol buffers. */
export function stateName(state: TaskState): string {
  return `TASK_STATE_${state.toUpperCase().replace("-", "_")}`;
}

const LONGEST_ID = 256;

/** A message of version 1.0, or of 0.3. */
export function messageField(params: Fields, version: "1.0" | "0.3"): IncomingMessage {
  const value = field(params, "message");
  if (value === undefined) throw wrongField("message", "is required");
  const fields = fieldsOf(value, "message");
  const role = requiredText(fields, "role", "message.role");
  if (!(version === "1.0" ? ["ROLE_USER", "ROLE_AGENT"] : ["user", "agent"]).includes(role))
    throw wrongField("message.role", "is not a role");
  const parts = field(fields, "parts");
  if (!Array.isArray(parts) || parts.length === 0) throw wrongField("message.parts", "must have at least one part");
  const contextId = textField(fields, "contextId", "message.contextId");
  if (contextId !== undefined && contextId.length > LONGEST_ID)
    throw wrongField("message.contextId", `has more than ${LONGEST_ID} characters`);
  const metadata = metadataField(fields, "message.metadata");
  const extensions = textsField(fields, "extensions");
  const referenceTaskIds = textsField(fields, "referenceTaskIds");
  return {
    messageId: requiredText(fields, "messageId", "message.messageId"),
    parts: parts.map((part, at) => (version === "1.0" ? partOf(part, `message.parts[${at}]`) : oldPartOf(part, `message.parts[${at}]`))),
    ...(contextId !== undefined && { contextId }),
    ...definedTaskId(fields),
    ...(metadata !== undefined && { metadata }),
    ...(extensions !== undefined && { extensions }),
    ...(referenceTaskIds !== undefined && { referenceTaskIds }),
  };
}

function definedTaskId(fields: Fields): { readonly taskId?: string } {
  const taskId = textField(fields, "taskId", "message.taskId");
  return taskId === undefined ? {} : { taskId };
}

function textsField(fields: Fields, name: string): readonly string[] | undefined {
  const value = field(fields, name);
  if (value === undefined || (Array.isArray(value) && value.length === 0)) return undefined;
  if (Array.isArray(value) && value.every((one) => typeof one === "string")) return value;
  throw wrongField(`message.${name}`, "must be a list of texts");
}

function metadataField(fields: Fields, at: string): JsonObject | undefined {
  const value = field(fields, "metadata");
  return value === undefined ? undefined : (fieldsOf(value, at) as JsonObject);
}

function partOf(value: unknown, at: string): Part {
  const fields = fieldsOf(value, at);
  const metadata = metadataField(fields, `${at}.metadata`);
  const mediaType = textField(fields, "mediaType", `${at}.mediaType`);
  const filename = textField(fields, "filename", `${at}.filename`);
  const info = {
    ...(mediaType !== undefined && { mediaType }),
    ...(filename !== undefined && { filename }),
    ...(metadata !== undefined && { metadata }),
  };
  const kinds = ["text", "raw", "url", "data"].filter((kind) => fields[kind] !== undefined);
  const [kind] = kinds;
  if (kind === undefined || kinds.length > 1) throw wrongField(at, "must have exactly one of text, raw, url and data");
  const content = fields[kind];
  if (kind === "data") return { data: content as Json, ...info };
  if (typeof content !== "string") throw wrongField(`${at}.${kind}`, "must be a text");
  if (kind === "text") return { text: content, ...info };
  return kind === "raw" ? { raw: base64(content, `${at}.raw`), ...info } : { url: content, ...info };
}

function oldPartOf(value: unknown, at: string): Part {
  const fields = fieldsOf(value, at);
  const metadata = metadataField(fields, `${at}.metadata`);
  const info = metadata === undefined ? {} : { metadata };
  if (fields.kind === "text" && typeof fields.text === "string") return { text: fields.text, ...info };
  if (fields.kind === "data" && isObject(fields.data)) return { data: fields.data as JsonObject, ...info };
  if (fields.kind !== "file") throw wrongField(at, "must be a text, a file or data");
  const file = fieldsOf(fields.file, `${at}.file`);
  const mediaType = textField(file, "mimeType", `${at}.file.mimeType`);
  const filename = textField(file, "name", `${at}.file.name`);
  const about = { ...(mediaType !== undefined && { mediaType }), ...(filename !== undefined && { filename }), ...info };
  if (typeof file.bytes === "string") return { raw: base64(file.bytes, `${at}.file.bytes`), ...about };
  if (typeof file.uri === "string") return { url: file.uri, ...about };
  throw wrongField(`${at}.file`, "must have bytes or a uri");
}

function base64(text: string, at: string): string {
  const plain = text.replaceAll("-", "+").replaceAll("_", "/");
  if (!/^[A-Za-z0-9+/]*={0,2}$/.test(plain)) throw wrongField(at, "must be base64");
  return plain;
}

/** Which version of the protocol a request names; null if it names none. Another version is refused. */
export function versionOf(header: string | string[] | undefined, query: URLSearchParams): "1.0" | "0.3" | null {
  const named = (typeof header === "string" && header !== "" ? header : query.get("A2A-Version")) ?? "";
  if (named === "") return null;
  const [, version] = /^(1\.0|0\.3)(?:\.\d+)?$/.exec(named.trim()) ?? [];
  if (version === undefined)
    throw new A2aError("VERSION_NOT_SUPPORTED", `Version '${named.slice(0, 40)}' is not supported; use 1.0 or 0.3`);
  return version as "1.0" | "0.3";
}
