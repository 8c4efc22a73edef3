import {
  commandResultAnswer,
  environment,
  environmentStatuses,
  errorTable,
  fileAnswer,
  fileListAnswer,
  historyEvent,
  identity,
  instance,
  instanceEvent,
  listedCommandAnswer,
  newTokenRecord,
  pageOf,
  resetResult,
  service,
  snapshotRecord,
  tokenRecord,
  versionRecord,
  visibilities,
} from "@aenv/contract";
import { z } from "zod";

// Schemas of responses, for `/openapi.json`. A test compares real responses with that document.

export const done = z.literal(true);
export const deleted = z.literal("Deleted successfully");

const digest = z.string().describe("sha256:…");
const time = z.iso.datetime();

const environmentRecord = environment.extend({
  publisher: z.string(),
  visibility: z.enum(visibilities),
  dependencies: z.array(z.string()),
  content_digest: digest,
  bundle_digest: digest.nullable(),
});

export const environments = {
  list: z.array(environmentRecord),
  search: z.object({ environments: z.array(environmentRecord), total: z.int() }),
  one: environmentRecord.extend({
    metadata: z
      .looseObject({
        tools: z.array(z.looseObject({ name: z.string() })),
        taskCount: z.int().nullable(),
        tasksProblem: z.string().nullish(),
        keepsStateInModules: z.boolean(),
      })
      .nullable()
      .describe("what the verification start reported; null if it was not verified"),
    history: z.array(historyEvent),
  }),
  versions: z.array(versionRecord),
  deleted: z.array(z.string()).describe("the deleted versions"),
  exists: z.object({ exists: z.boolean(), status: z.int().optional() }),
  status: z.object({ status: z.enum(environmentStatuses) }),
  link: z.url(),
  uploaded: z.object({ digest }),
  isUploaded: z.object({ exists: z.boolean() }),
};

const instanceRecord = instance.extend({
  environment: z.string().describe("name@version"),
  expires_at: time.optional().describe("absent for a replica of a service"),
  service: z.string().optional().describe("the service whose replica it is"),
  reason: z.string().nullable().describe("why it failed or ended"),
  frozen: z.boolean().optional().describe("its sandbox is frozen because it is idle; the next call continues it"),
  task: z.string().nullable(),
  seed: z.int(),
  agent_url: z.url().nullable().describe("the agent API: MCP, tools only; null if the environment has roles"),
  a2a_url: z.url().nullable().describe("where A2A clients find the card; ends with a slash"),
  role_urls: z.record(z.string(), z.url()).optional().describe("the agent API of each role, if the environment has roles"),
  data_url: z.url(),
});
const failedItem = z.object({
  success: z.literal(false),
  message: z.string(),
  error: z.object({ code: z.enum(Object.keys(errorTable)), retryable: z.boolean() }),
});

export const instances = {
  one: instanceRecord,
  some: z.array(instanceRecord),
  page: pageOf(instanceRecord),
  listed: z.union([z.array(instanceRecord), z.object({ items: z.array(instanceRecord) })]),
  batch: z.object({
    items: z.array(z.union([z.object({ success: z.literal(true), data: instanceRecord }), failedItem])),
    created: z.int(),
    failed: z.int(),
  }),
  reset: resetResult,
  snapshot: z
    .union([snapshotRecord, z.unknown()])
    .describe(
      "the stored snapshot, or the state; pass its name, or the state, as `snapshot` when creating an instance to continue from it",
    ),
  events: z.array(instanceEvent),
  link: z.object({
    url: z.url().describe("works for every client; a page that a browser opens there is sent to host_url"),
    host_url: z.url().nullable().describe("the link's own host name, which separates its pages from others; null if the server has none"),
    path_url: z.url().describe("the link as a path of the data port"),
    expires_at: time,
  }),
};

export const snapshots = {
  one: snapshotRecord,
  page: pageOf(snapshotRecord),
};

export const commands = { finished: commandResultAnswer, list: z.array(listedCommandAnswer) };
export const files = { one: fileAnswer, list: fileListAnswer };

const serviceRecord = service.extend({ environment: z.string().describe("name@version"), reason: z.string().nullable() });
export const services = { one: serviceRecord, some: z.array(serviceRecord) };

export const tokens = {
  some: z.array(tokenRecord),
  made: newTokenRecord.extend({ token: z.string().describe("returned only once") }),
  whoami: identity.extend({ token: z.string().nullable().describe("its id; null without access control") }),
};
