import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { readJson } from "../../python/json/reader.ts";
import type { PyValue } from "../../python/values/values.ts";
import { readToml } from "./toml.ts";

/** The benchmark's files: `<domain>/db.json`, … in a data directory, or below `tau2/domains` in a checkout. */
export class DataDirectory {
  readonly path: string;
  readonly #domains: string;

  constructor(path: string) {
    this.path = path;
    const checkout = ["tau2", "data/tau2"].map((folder) => join(path, folder, "domains")).find((folder) => existsSync(folder));
    this.#domains = checkout ?? path;
  }

  has(...parts: readonly string[]): boolean {
    return existsSync(this.#pathOf(parts));
  }

  /** The contents of a text file, with `\n` as line end. */
  text(...parts: readonly string[]): string {
    const path = this.#pathOf(parts);
    if (!existsSync(path)) {
      throw new Error(
        `tau2 needs the file ${path}; prepare it with: aenv bench data tau2 --from CHECKOUT_OR_ARCHIVE_OF_THE_BENCHMARK, or set TAU2_DATA_DIR to another directory (it is ${this.path} now)`,
      );
    }
    return readFileSync(path, "utf8").replaceAll("\r\n", "\n");
  }

  /** The contents of a JSON or TOML file. */
  value(...parts: readonly string[]): PyValue {
    const text = this.text(...parts);
    return parts.at(-1)?.endsWith(".toml") ? readToml(text) : readJson(text);
  }

  /** `user_simulator` is next to the domains; in a checkout it is next to the folder of the domains. */
  #pathOf(parts: readonly string[]): string {
    const isBeside = parts[0] === "user_simulator" && this.#domains !== this.path;
    return isBeside ? join(this.#domains, "..", ...parts) : join(this.#domains, ...parts);
  }
}
