import type { EgressPolicy } from "@aenv/contract";

/** Storage that outlives the replicas of a service. Services of one owner with the same name share it. */
export interface ServiceStorage {
  readonly name: string;
  /** A quantity such as `10Gi`. Storage that exists already keeps its size. */
  readonly size: string;
  /** Where the replica sees it; null: where the engine's template has it. */
  readonly mountPath: string | null;
}

/** Quantities such as `500m` and `2Gi`, by what they limit. */
export interface ServiceResources {
  readonly cpu?: string | undefined;
  readonly memory?: string | undefined;
  readonly ephemeralStorage?: string | undefined;
}

/** Files of a program that are not in its image. The platform sends them to every new replica, which starts when it has them. */
export interface ServiceBundle {
  /** The name of their folder in replicas: the same on every server, and another one for other files. */
  readonly name: string;
  /** The folder of this machine that has them. */
  readonly open: () => Promise<string>;
  /** Where the program runs, inside of the folder. */
  readonly cwd: string;
  /** The image that has the init, which receives them. */
  readonly baseImage: string;
}

/** Equal replicas of a program that the engine itself keeps running behind one address. */
export interface ServiceSpec {
  readonly id: string;
  readonly owner: string;
  readonly environment: { readonly name: string; readonly version: string };
  readonly replicas: number;
  readonly image: string;
  /** Empty: the program of the image. */
  readonly command: readonly string[];
  /** Undefined: the image has the whole program. */
  readonly bundle?: ServiceBundle | undefined;
  readonly port: number;
  /** A path that succeeds when a replica is ready; null: it is ready when it accepts connections. */
  readonly healthPath: string | null;
  /** They are readable in the engine's own description of the service. */
  readonly variables: Readonly<Record<string, string>>;
  readonly egress?: EgressPolicy | undefined;
  readonly runtime?: "runc" | "runsc" | undefined;
  readonly storage: ServiceStorage | null;
  readonly requests: ServiceResources;
  readonly limits: ServiceResources;
}

/** A replica that takes calls. */
export interface ServiceReplica {
  readonly id: string;
  readonly address: { readonly kind: "tcp"; readonly host: string; readonly port: number };
}

export interface ServiceStatus {
  /** Replicas that the engine counts as available, of whatever settings. */
  readonly available: number;
  /** Some replicas do not have the latest settings yet. */
  readonly isUpdating: boolean;
  readonly replicas: readonly ServiceReplica[];
  /** Why replicas do not run; null if they do, or may still do. */
  readonly reason: string | null;
}

/** What there was of the services of an engine at one moment. */
export interface SeenServices {
  /** The services of which there is anything. */
  readonly ids: readonly string[];
  /** Creates what is missing of a service, and changes what differs. Without a difference, nothing is sent. */
  apply(spec: ServiceSpec): Promise<ServiceStatus>;
}

/** Services of an engine that keeps replicas running by itself. */
export interface ServiceEngine {
  /** Names the place of these services. Engines with the same one see each other's. */
  readonly location: string;
  /** Image of replicas that have none of their own. It has Node and the init. */
  readonly baseImage: string;
  /** The address of a service for programs near the engine, without a scheme. */
  urlOf(id: string, port: number): string;
  /** Throws if there can be no such service, with what to do. */
  admit(spec: ServiceSpec): Promise<void>;
  /** Looks at one service, or at all. */
  look(id?: string): Promise<SeenServices>;
  /** Deletes a service. Idempotent; storage is kept. */
  remove(id: string): Promise<void>;
  /** Deletes a storage of an owner and what is in it. Idempotent. */
  removeStorage(name: string, owner: string): Promise<void>;
}
