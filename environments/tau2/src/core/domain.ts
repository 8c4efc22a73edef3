import { valueError } from "@aenv/benchmark";
import type { Model } from "../python/model/model.ts";
import type { PyObject } from "../python/values/objects.ts";
import type { DataDirectory } from "./data/directory.ts";
import { copy } from "./database/copy.ts";
import { Environment } from "./environment.ts";
import { parseTaskSet, type TaskSet } from "./tasks.ts";
import { Toolkit, type ToolkitDefinition } from "./tools/toolkit.ts";

/** One side of a domain: its tools, and the file and model of its database. */
export interface SideDefinition {
  readonly toolkit: ToolkitDefinition;
  readonly model: Model;
  readonly file: string;
}

/** A domain without its files; `openDomain` reads them. */
export interface DomainDefinition {
  readonly name: string;
  /** Its folder in the data directory; its name if not given. */
  readonly folder?: string;
  readonly agent: SideDefinition;
  readonly user: SideDefinition | null;
  /** Builds the agent's policy from files of the domain's folder. */
  readonly policy: (read: (file: string) => string, isSolo: boolean) => string;
  /** The error that solo mode raises; null if the domain supports solo mode. */
  readonly soloError: string | null;
  /** The split to use if none is given; null means all tasks. */
  readonly defaultSplit: string | null;
  readonly sync?: (environment: Environment) => void;
}

export interface EnvironmentOptions {
  readonly isSolo?: boolean;
  readonly now?: () => string;
}

/** A domain with its files. The databases are parsed once; environments share the rows that they have not edited. */
export class Domain {
  readonly definition: DomainDefinition;
  readonly data: DataDirectory;
  readonly #databases = new Map<SideDefinition, PyObject>();
  readonly #policies = new Map<boolean, string>();
  #tasks: TaskSet | null = null;

  constructor(definition: DomainDefinition, data: DataDirectory) {
    this.definition = definition;
    this.data = data;
  }

  get name(): string {
    return this.definition.name;
  }

  /** A fresh environment. */
  create({ isSolo = false, now }: EnvironmentOptions = {}): Environment {
    const { name, agent, user, soloError, sync } = this.definition;
    if (isSolo && soloError !== null) throw valueError(soloError);
    const environment = new Environment({
      domainName: name,
      policy: this.policy(isSolo),
      tools: this.#toolkit(agent),
      userTools: user === null ? null : this.#toolkit(user),
      ...(sync === undefined ? {} : { sync }),
      ...(now === undefined ? {} : { now }),
    });
    if (isSolo) environment.setSolo(true);
    return environment;
  }

  policy(isSolo: boolean): string {
    let policy = this.#policies.get(isSolo);
    if (policy === undefined) {
      policy = this.definition.policy((file) => this.data.text(this.#folder, file), isSolo);
      this.#policies.set(isSolo, policy);
    }
    return policy;
  }

  get tasks(): TaskSet {
    this.#tasks ??= parseTaskSet(this.data.value(this.#folder, "tasks.json"), this.data.value(this.#folder, "split_tasks.json"));
    return this.#tasks;
  }

  get #folder(): string {
    return this.definition.folder ?? this.definition.name;
  }

  #toolkit(side: SideDefinition): Toolkit {
    let database = this.#databases.get(side);
    if (database === undefined) {
      database = side.model.validate(this.data.value(this.#folder, side.file));
      this.#databases.set(side, database);
    }
    return new Toolkit(side.toolkit, copy(database));
  }
}
