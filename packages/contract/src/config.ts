import * as z from "zod";
import { childUses } from "./children.ts";
import { parseDuration } from "./duration.ts";
import { egressPolicy } from "./egress.ts";
import { environmentStatuses } from "./environment.ts";
import { messageOf, PlatformError } from "./errors.ts";
import { declaredModels } from "./model-endpoint.ts";
import { nameProblem } from "./ref.ts";
import { deployLimits, quantity } from "./resources.ts";
import { initCommand, mountPoints } from "./sandbox-options.ts";
import { secretNames } from "./secrets.ts";
import { taskSandboxConfig } from "./task-sandboxes.ts";
import { variableProblem } from "./variables.ts";

const text = z.string();
const texts = z.record(z.string(), z.string());
/** A publisher may set any variable for its own code, except those of the platform. */
const variables = texts.superRefine((given, context) => {
  for (const [name, value] of Object.entries(given)) {
    const problem = variableProblem(name, value, "publisher");
    if (problem !== null) context.addIssue({ code: "custom", message: problem, path: [name] });
  }
});
const count = z.number().int().nonnegative();
const port = z.number().int().min(1).max(65_535);

const name = z.string().superRefine((value, context) => {
  const problem = nameProblem(value);
  if (problem !== null) context.addIssue({ code: "custom", message: problem });
});
const duration = z.string().superRefine((value, context) => {
  try {
    parseDuration(value);
  } catch (error) {
    context.addIssue({ code: "custom", message: messageOf(error) });
  }
});
/** Case-insensitive, as in the hub. */
const status = z.string().refine((value) => environmentStatuses.some((known) => known.toLowerCase() === value.toLowerCase()), {
  message: `must be one of ${environmentStatuses.join(", ")}`,
});
const insidePath = z
  .string()
  .min(1)
  .refine((value) => !value.startsWith("/") && !value.split(/[\\/]/).includes(".."), {
    message: "must be a path inside the project",
  });

const urlPath = z.string().regex(/^\/[^\s?#]*$/, 'must be a path of a URL such as "/health"');

/** A program that is the environment, instead of a module in TypeScript. It is started in a copy of the project's folder. */
const runtime = z.looseObject({
  /** The program and its arguments. `{port}` and `{host}` are replaced by where it must listen, which `PORT` and `HOST` say as well. */
  command: z.array(text.min(1)).min(1),
  /** The port on which it listens if the command does not name `{port}`. */
  port: port.optional(),
  /** The path that says whether it is ready; without it, `/health`, where any answer below 500 is enough. */
  healthPath: urlPath.optional(),
  /** The folder of the project in which it is started. */
  cwd: insidePath.optional(),
});

const storage = {
  replicas: count.optional(),
  port: port.optional(),
  enableStorage: z.boolean().optional(),
  storageName: text.optional(),
  storageSize: quantity.optional(),
  mountPath: text.optional(),
  pvcName: text.optional(),
};

const deployConfig = z.looseObject({
  ...deployLimits,
  os: text.optional(),
  environmentVariables: variables.optional(),
  environment_variables: variables.optional(),
  arguments: z.array(text).optional(),
  resource: text.optional(),
  ttl: duration.optional(),
  /** The sandbox of an instance that was not used for so long is frozen until the next call. */
  freezeAfter: duration.optional(),
  owner: text.optional(),
  labels: texts.optional(),
  /** `shared`: a slot in a process of the owner's instances; `instance`: a process of its own. */
  isolation: z.enum(["shared", "instance"]).optional(),
  /** How its sandboxes run, on engines with a choice: `runc` with the kernel of the machine, `runsc` with one of their own (gVisor). */
  runtime: z.enum(["runc", "runsc"]).optional(),
  /** The number of warm processes to keep ready. */
  warm: count.optional(),
  /** The process is stored once with its memory after it has loaded the environment, and later ones are copies; for engines that can. */
  warmStart: z.boolean().optional(),
  /** Ports on which the environment's own programs listen; presigned links can be made for these. */
  ports: z.array(port).max(16).optional(),
  /** The path at which an image's server says whether it is ready, as `runtime.healthPath`. */
  healthPath: urlPath.optional(),
  /** Where programs of an instance may connect to, on engines that restrict it; `none` by default. */
  egress: egressPolicy.optional(),
  /** The same while a reward is computed; by default as before. */
  rewardEgress: egressPolicy.optional(),
  /** Variables whose values are secrets of the publisher, by the secrets' names. */
  secrets: secretNames.optional(),
  /** The models that the environment's code calls, by name. */
  models: declaredModels.optional(),
  imagePrefix: text.optional(),
  podTemplate: text.optional(),
  templateType: text.optional(),
  /** The image of the second container of instances without a `datasource`. */
  secondImageName: text.optional(),
  taskSandboxes: taskSandboxConfig.optional(),
  /** Environments of which each episode has an instance of its own. */
  uses: childUses.optional(),
  mountPoints: mountPoints.optional(),
  initCommand: initCommand.optional(),
  dataSource: text.optional(),
  service: z.looseObject(storage).optional(),
  // The flat fields below are older than `service` and still supported.
  ...storage,
  serviceName: text.optional(),
  cpuRequest: quantity.optional(),
  cpuLimit: quantity.optional(),
  memoryRequest: quantity.optional(),
  memoryLimit: quantity.optional(),
  ephemeralStorageRequest: quantity.optional(),
  ephemeralStorageLimit: quantity.optional(),
});

/** An environment project's `config.json`, which is published with it. Unknown fields are kept. */
export const environmentConfig = z.looseObject({
  name,
  version: z
    .string()
    .min(1)
    .refine((value) => !value.includes("@"), { message: "must not contain '@'" }),
  description: text.optional(),
  tags: z.array(text).optional(),
  status: status.optional(),
  codeUrl: text.optional(),
  /** The module that defines the environment; without it `src/index.*`, then the files of `src`. */
  main: insidePath.optional(),
  runtime: runtime.optional(),
  artifacts: z.array(z.looseObject({ id: text.optional(), type: text, content: text })).optional(),
  buildConfig: z
    .looseObject({
      dockerfile: text.optional(),
      context: text.optional(),
      image_name: text.optional(),
      image_tag: text.optional(),
      build_policy: text.optional(),
      /** Files and folders to include in the bundle besides the code. */
      data: z.array(insidePath).optional(),
    })
    .optional(),
  testConfig: z.looseObject({ script: text.optional() }).optional(),
  deployConfig: deployConfig.optional(),
  requirements: z.looseObject({ cpu: text.optional(), memory: text.optional() }).optional(),
  type: text.optional(),
});
export type EnvironmentConfig = z.infer<typeof environmentConfig>;

/** One problem of a config: its path, and a message with the value and what is allowed. */
export interface ConfigProblem {
  readonly path: readonly (string | number)[];
  readonly message: string;
}

export type ConfigCheck =
  | { readonly ok: true; readonly config: EnvironmentConfig }
  | { readonly ok: false; readonly problems: readonly ConfigProblem[] };

/** Reports all problems at once, with paths, for tools that point at lines. */
export function checkConfig(value: unknown): ConfigCheck {
  // A sandbox reads one config.json, and compiling the schema would take ten times as long as the check.
  const parsed = environmentConfig.safeParse(value, { jitless: true });
  if (parsed.success) return { ok: true, config: parsed.data };
  const problems = parsed.error.issues.map((issue) => {
    const path = issue.path.map((key) => (typeof key === "symbol" ? String(key) : key));
    return { path, message: describeIssue(issue, path, valueAt(value, path)) };
  });
  return { ok: false, problems };
}

/** The config, or one error that names every invalid field, its value and what is allowed. */
export function parseConfig(value: unknown): EnvironmentConfig {
  const checked = checkConfig(value);
  if (checked.ok) return checked.config;
  const lines = checked.problems.map((problem) => problem.message);
  throw new PlatformError("environment.invalid", `config.json: ${lines.join("; ")}`, { details: { problems: checked.problems } });
}

function describeIssue(issue: z.core.$ZodIssue, path: readonly (string | number)[], value: unknown): string {
  const field = path.length === 0 ? "the file" : path.join(".");
  if (value === undefined) return `${field} is missing; ${allowed(issue)}`;
  return `${field} is ${show(value)}; ${allowed(issue)}`;
}

function allowed(issue: z.core.$ZodIssue): string {
  switch (issue.code) {
    case "invalid_type":
      return `it must be ${article(issue.expected)}`;
    case "too_small":
      return issue.origin === "string" || issue.origin === "array" ? "it must not be empty" : `it must be at least ${issue.minimum}`;
    case "too_big":
      return `it must be at most ${issue.maximum}`;
    default:
      return issue.message.startsWith("must") ? `it ${issue.message}` : issue.message;
  }
}

function article(type: string): string {
  if (type === "record") return "an object of strings";
  return /^[aeiou]/.test(type) ? `an ${type}` : `a ${type}`;
}

function show(value: unknown): string {
  const json = JSON.stringify(value) ?? String(value);
  return json.length > 80 ? `${json.slice(0, 77)}...` : json;
}

function valueAt(value: unknown, path: readonly (string | number)[]): unknown {
  let here = value;
  for (const key of path) {
    if (typeof here !== "object" || here === null) return undefined;
    here = (here as Record<string | number, unknown>)[key];
  }
  return here;
}
