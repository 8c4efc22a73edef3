import * as z from "zod";
import { childMethod, childName, childPath } from "./children.ts";
import { egressPolicy } from "./egress.ts";
import { episodeTask } from "./instance.ts";
import { modelName } from "./model-calls.ts";
import { openLimits } from "./resources.ts";
import { capabilitySet } from "./task-sandboxes.ts";

const sandbox = z.string().min(1).max(128);
const instanceId = z.string().min(1).max(128);
const posixPath = /^(?:\/(?!\.{0,2}(?:\/|$))[^/]+)+$/;
const path = z
  .string()
  .min(1)
  .max(4_096)
  .refine((text) => !text.includes("\0"), { message: "must not contain a NUL byte" });
const folderPath = path.refine((text) => posixPath.test(text), { message: "must be an absolute path below '/', without '.' and '..'" });
const hostName = z.string().regex(/^[A-Za-z0-9](?:[A-Za-z0-9_.-]{0,251}[A-Za-z0-9])?$/, { message: "must be a host name" });
const user = z.string().min(1).max(256);
const words = z.array(z.string().max(65_536)).max(256).readonly();
const env = z.record(z.string().regex(/^[^=\0]+$/), z.string());
const mode = z.int().min(0).max(0o7777);

/** The parameters of each request that an environment sends to the platform, by its path. */
export const linkRequests = {
  "/open": z.strictObject({
    /** What the environment's code calls it. */
    name: z.string().min(1).max(128),
    /** While an episode is reset, the sandboxes of the next one are opened before those of the last one end. */
    episode: z.string().min(1).max(64),
    /** `second`: the second container. `fresh`: another one of the image of the sandbox `of`. `copy`: from a snapshot of a sandbox. */
    purpose: z.enum(["second", "open", "fresh", "copy"]),
    of: sandbox.optional(),
    image: z.string().max(512).optional(),
    ...openLimits,
    /** Folders in memory, which counts as that of the sandbox. */
    tmpfs: z
      .array(z.strictObject({ path: folderPath, size_mb: z.int().min(1), mode: mode.optional(), is_executable: z.boolean().optional() }))
      .max(16)
      .optional(),
    /** Further lines of `/etc/hosts`. */
    hosts: z
      .array(z.strictObject({ name: hostName, address: z.union([z.ipv4(), z.ipv6()]) }))
      .max(256)
      .optional(),
    capabilities: capabilitySet.optional(),
    egress: egressPolicy.optional(),
    /** Sandboxes of an episode with the same network reach each other by their aliases. */
    networks: z
      .array(
        z.strictObject({
          name: z.string().min(1).max(128),
          aliases: z.array(hostName).max(16),
        }),
      )
      .max(16)
      .optional(),
    /** Sandboxes of an episode with the same volume have its files at these paths. */
    volumes: z
      .array(z.strictObject({ name: z.string().min(1).max(128), path: folderPath, is_read_only: z.boolean() }))
      .max(16)
      .optional(),
    /** Run as that of a container: what is not given is that of the image. */
    program: z
      .strictObject({
        entrypoint: words.optional(),
        command: words.optional(),
        cwd: path.optional(),
        user: user.optional(),
        env: env.optional(),
      })
      .optional(),
    /** What `/snapshot` returned. */
    snapshot: z.string().max(256).optional(),
  }),
  /** Stores the files of a sandbox, for copies of it. */
  "/snapshot": z.strictObject({ sandbox }),
  "/snapshot/remove": z.strictObject({ snapshot: z.string().max(256) }),
  "/close": z.strictObject({ sandbox }),
  /** Without `egress`, the sandbox gets what the environment may use at most. */
  "/egress": z.strictObject({ sandbox, egress: egressPolicy.optional() }),
  /** Bytes: the input of the command. The answer is a stream of frames. */
  "/run": z.strictObject({
    sandbox,
    command: z.union([z.string().min(1), z.array(z.string()).min(1)]),
    cwd: path.optional(),
    env: env.optional(),
    user: user.optional(),
    timeout_ms: z.int().min(1).optional(),
    /** The output is sent when the command has ended, with at most so many bytes of each channel; without it, at once. */
    max_output_bytes: z
      .int()
      .min(0)
      .max(16 * 1_024 ** 2)
      .optional(),
    terminal: z.strictObject({ rows: z.int().min(1).max(10_000), cols: z.int().min(1).max(10_000) }).optional(),
    has_input: z.boolean(),
  }),
  "/signal": z.strictObject({ sandbox, process: z.int().min(1), signal: z.string().regex(/^SIG[A-Z0-9]+$/) }),
  /** Bytes: a `modelCall` in JSON. The answer is a `modelCallAnswer`. */
  "/model": z.strictObject({ model: modelName }),
  "/files/read": z.strictObject({ sandbox, path, offset: z.int().min(0).optional(), length: z.int().min(0).optional() }),
  /** Bytes: the content of the file. */
  "/files/write": z.strictObject({ sandbox, path, mode: mode.optional(), append: z.boolean().optional(), user: user.optional() }),
  "/files/list": z.strictObject({
    sandbox,
    path,
    recursive: z.boolean().optional(),
    limit: z.int().min(1).max(1_000_000),
    /** With what two sandboxes are compared by. */
    exact: z.boolean().optional(),
  }),
  "/files/stat": z.strictObject({ sandbox, path, follow: z.boolean().optional() }),
  "/files/mkdir": z.strictObject({ sandbox, path, mode: mode.optional() }),
  "/files/remove": z.strictObject({ sandbox, path, recursive: z.boolean().optional() }),
  "/files/rename": z.strictObject({ sandbox, path, to: path }),
  "/files/download": z.strictObject({ sandbox, path }),
  /** Bytes: a tar archive. */
  "/files/upload": z.strictObject({ sandbox, path, user: user.optional() }),
  /** Bytes: absolute paths, each ended by a zero byte. The answer is an archive for `/files/import` of another sandbox. */
  "/files/export": z.strictObject({ sandbox }),
  /** Bytes: a tar archive. */
  "/files/import": z.strictObject({ sandbox }),
  /** Starts a child for an episode of the instance. Bytes: the snapshot that it continues from, with `has_snapshot`. */
  "/child/open": z.strictObject({
    name: childName,
    episode: z.string().min(1).max(64),
    seed: z.int().min(0),
    task: episodeTask.optional(),
    has_snapshot: z.boolean(),
  }),
  /** Bytes: the body. The answer is one line, the status and the content type as JSON, and then the body. */
  "/child/request": z.strictObject({ child: instanceId, method: childMethod, path: childPath }),
  "/child/close": z.strictObject({ child: instanceId }),
} as const;
export type LinkPath = keyof typeof linkRequests;
export type LinkParameters<P extends LinkPath> = z.infer<(typeof linkRequests)[P]>;

export const openedSandbox = z.object({ id: z.string(), image: z.string().nullable() });

/** A failure, as the body of an answer or as an event. */
export const linkFailure = z.object({ code: z.string(), message: z.string(), retryable: z.boolean() });
export type LinkFailure = z.infer<typeof linkFailure>;

/** Events between the output of a command. */
export const commandEvent = z.discriminatedUnion("type", [
  z.object({ type: z.literal("started"), process: z.number(), pid: z.number() }),
  z.object({
    type: z.literal("ended"),
    exit_code: z.number().nullable(),
    signal: z.string().nullable(),
    timed_out: z.boolean(),
    out_of_memory: z.boolean(),
    interruption: z.string().nullable(),
    duration_ms: z.number(),
    dropped_bytes: z.number(),
  }),
  z.object({ type: z.literal("failed"), failure: linkFailure }),
]);
export type CommandEvent = z.infer<typeof commandEvent>;
