import { fillPath, instanceRoutes } from "@aenv/contract";
import { defaultTransport } from "#transport";
import { type Clock, systemClock } from "../async/clock.ts";
import type { Transport } from "../http/http.ts";
import { JsonClient } from "../http/json-client.ts";
import { McpClient } from "../mcp/client.ts";
import { type Addresses, pinAddresses, resolveAddresses } from "../platform/addresses.ts";
import { SchedulerClient } from "../platform/scheduler-client.ts";
import { readSettings } from "../platform/settings.ts";
import { fetchTransport } from "../transport/fetch.ts";
import { localTransport } from "../transport/local.ts";
import { tracedTransport } from "../transport/traced.ts";
import { InstanceLifecycle, REFUSED_LIMIT_MS } from "./instance-lifecycle.ts";
import { type Logger, silentLogger } from "./logger.ts";
import { isOnPlatform, type OpenInstance } from "./open-instance.ts";
import { type EnvironmentOptions, requestLimit } from "./options.ts";
import { SandboxClient } from "./sandbox-client.ts";
import { ToolCaller } from "./tool-caller.ts";

/** The clients of an open instance. */
export interface Clients extends AsyncDisposable {
  readonly instance: OpenInstance;
  readonly tools: ToolCaller;
  readonly sandbox: SandboxClient;
  /** The tools as a role has them. */
  toolsOf(role: string | undefined): ToolCaller;
}

const DEFAULT_TIMEOUT_MS = 60_000;
const DEFAULT_RETRIES = 10;

/** How an environment is reached: addresses, transport, timeouts and tokens, from the options and the environment variables. */
export class Connection {
  /** The options with what the environment variables say now. Forks use the same, even if the variables change. */
  readonly options: EnvironmentOptions;
  readonly addresses: Addresses;
  readonly timeoutMs: number;
  readonly lifecycle: InstanceLifecycle;
  readonly #ref: string;
  readonly #transport: Transport;
  readonly #clock: Clock;
  readonly #logger: Logger;
  readonly #maxRetries: number;
  readonly #refusedLimitMs: number | undefined;
  readonly #client: JsonClient;

  constructor(ref: string, options: EnvironmentOptions) {
    const { timeoutMs = DEFAULT_TIMEOUT_MS, maxRetries = DEFAULT_RETRIES, clock = systemClock, logger = silentLogger } = options;
    const settings = readSettings();
    const addresses = resolveAddresses(options, settings);
    const traced = tracedTransport(options.transport ?? (options.fetch === undefined ? defaultTransport : fetchTransport(options.fetch)));
    const transport = addresses.mode === "local" ? localTransport(traced) : traced;
    const refusedLimitMs = addresses.mode === "local" ? REFUSED_LIMIT_MS : undefined;
    // A sandbox on this machine never gets the platform's key.
    const pinned = settings.apiKey !== undefined && addresses.mode === "remote" ? { apiKey: settings.apiKey } : {};
    this.options = { ...pinned, ...options, ...pinAddresses(addresses) };
    this.addresses = addresses;
    this.timeoutMs = timeoutMs;
    this.#ref = ref;
    this.#transport = transport;
    this.#clock = clock;
    this.#logger = logger;
    this.#maxRetries = maxRetries;
    this.#refusedLimitMs = refusedLimitMs;
    const { dedupesCreate = true, maxAnswerBytes, maxAnswerValues } = options;
    const answers = { ...(maxAnswerBytes !== undefined && { maxAnswerBytes }), ...(maxAnswerValues !== undefined && { maxAnswerValues }) };
    this.#client = new JsonClient({ transport, clock, maxRetries, refusedLimitMs, ...answers });
    // A sandbox on this machine runs an author's code, which must not receive the platform's key.
    const apiKey = addresses.mode === "local" ? "" : (this.options.apiKey ?? "");
    const controlUrl = addresses.mode === "local" ? addresses.sandboxUrl : addresses.controlUrl;
    const scheduler = new SchedulerClient(controlUrl, { timeoutMs, maxRetries, transport, clock, dedupesCreate, apiKey, ...answers });
    // The variable's token is for the platform. Only a token that was passed together with an address is sent to that address.
    const token = addresses.mode === "local" ? (options.apiKey ?? "") : apiKey;
    this.lifecycle = new InstanceLifecycle({ ref, addresses, options, scheduler, client: this.#client, clock, logger, timeoutMs, token });
  }

  clientsOf(instance: OpenInstance): Clients {
    const { url, headers } = instance;
    const tools = this.#toolsAt(instance, `${url}/mcp`);
    const ofRoles = new Map<string, ToolCaller>();
    const sandbox = new SandboxClient(this.#client, { envName: this.#ref, url, headers, timeoutMs: this.timeoutMs });
    const toolsOf = (role: string | undefined): ToolCaller => {
      if (role === undefined) return tools;
      const own = ofRoles.get(role) ?? this.#toolsAt(instance, `${url}${fillPath(instanceRoutes.roleMcp, { role })}`);
      ofRoles.set(role, own);
      return own;
    };
    return {
      instance,
      tools,
      sandbox,
      toolsOf,
      [Symbol.asyncDispose]: async () => {
        await Promise.all([tools, ...ofRoles.values()].map((one) => one.close()));
      },
    };
  }

  #toolsAt({ record, url: instanceUrl, headers }: OpenInstance, url: string): ToolCaller {
    const mcp = new McpClient({
      url,
      headers,
      transport: this.#transport,
      clock: this.#clock,
      maxRetries: this.#maxRetries,
      refusedLimitMs: this.#refusedLimitMs,
      maxAnswerBytes: this.options.maxAnswerBytes,
      maxRequestBytes: requestLimit(this.options, this.addresses.mode === "remote" && !isOnPlatform(record)),
    });
    return new ToolCaller({ envName: this.#ref, url: instanceUrl, mcp, clock: this.#clock, logger: this.#logger });
  }
}
