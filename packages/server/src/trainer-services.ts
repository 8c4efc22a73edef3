import type { Outcome } from "@aenv/contract";
import type { Access } from "./access/access.ts";
import type { Delegates } from "./access/delegates.ts";
import type { Quotas } from "./access/quotas.ts";
import type { ApiRoute } from "./api/route.ts";
import type { ServerConfig } from "./config/config.ts";
import type { OpenEnvRoutes } from "./gateway/gateway.ts";
import type { Hub } from "./hub/hub.ts";
import type { Lifecycle } from "./lifecycle/lifecycle.ts";
import type { CallModel } from "./models/endpoint.ts";
import type { ModelPolicy } from "./models/model-policy.ts";
import type { Peers } from "./peers/peers.ts";
import type { Scheduler } from "./slots/scheduler.ts";
import type { Store } from "./stores/store.ts";

// Everything that `packages/trainer` may use of the server.

export type { Access, Caller } from "./access/access.ts";
export type { Delegates } from "./access/delegates.ts";
export { isInScope } from "./access/scopes.ts";
export { type ApiRequest, type ApiRoute, bare, bodyLimits, endpointOf, route } from "./api/route.ts";
export { OPENENV } from "./gateway/destination.ts";
export { readBody } from "./http/body.ts";
export { answerPings } from "./http/pings.ts";
export type { EnvironmentVersion, Hub } from "./hub/hub.ts";
export type { CallModel, ModelEndpoint } from "./models/endpoint.ts";
export { defaultModels, ModelPolicy } from "./models/model-policy.ts";
export type { Scheduler } from "./slots/scheduler.ts";
export { Collection } from "./stores/collection.ts";
export type { InsertOptions, InsertResult, ListOptions, Store, Versioned } from "./stores/store.ts";

/** What a server gives to the services for trainers, which use its environments and instances through its own ports only. */
export interface TrainerServicesOptions {
  readonly config: ServerConfig;
  readonly lifecycle: Lifecycle;
  readonly version: string;
  readonly serverId: string;
  /** No other server uses the store. */
  readonly isAlone: boolean;
  readonly store: Store;
  readonly hub: Hub;
  readonly access: Access;
  readonly delegates: Delegates;
  readonly quotas: Quotas;
  readonly scheduler: Scheduler;
  readonly peers: Peers;
  /** Which model endpoints may be called. */
  readonly modelPolicy: ModelPolicy;
  /** Its own two ports, on loopback. Called when both are open. */
  readonly ownUrls: () => OwnUrls;
  /** All ports that it listens on. */
  readonly ownPorts: () => readonly number[];
  readonly now: () => Date;
  /** A rollout is done. */
  readonly onDone: (outcome: Outcome) => void;
  readonly logFailure: (message: string) => (error: unknown) => void;
}

export interface OwnUrls {
  readonly controlUrl: string;
  readonly dataUrl: string;
}

/** Sessions, rollouts and the OpenEnv protocol, as the server runs them. `packages/trainer` implements them. */
export interface TrainerServices {
  /** Routes of the control port. */
  readonly routes: readonly ApiRoute[];
  /** Routes of the data port. */
  readonly openenv: OpenEnvRoutes;
  /** Calls models for the code of environments. */
  readonly callModel: CallModel;
  /** How many rollouts this server plays now. */
  readonly running: () => number;
}

export type OpenTrainerServices = (options: TrainerServicesOptions) => TrainerServices;
