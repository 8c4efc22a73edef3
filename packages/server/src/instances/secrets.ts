import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { type CreateInstanceRequest, PlatformError, type Variables, variableProblem } from "@aenv/contract";
import type { EnvironmentVersion } from "../hub/hub.ts";

const MAX_BYTES = 64 * 1024;

/** The secrets of owners: files `OWNER/NAME` in a folder of the operator. Values are read for each start and kept nowhere. */
export class Secrets {
  readonly #folder: string | null;

  constructor(folder: string | null) {
    this.#folder = folder;
  }

  /**
   * The variables with the secrets that an instance of this owner gets. An environment names secrets of its own publisher; somebody
   * else who uses it has to name secrets in the request: neither gives the other a secret without saying so.
   */
  async resolve(
    environment: Pick<EnvironmentVersion, "name" | "version" | "owner" | "config">,
    request: Pick<CreateInstanceRequest, "secrets">,
    owner: string,
  ): Promise<Variables> {
    const wanted = environment.config.deployConfig?.secrets ?? {};
    const given = request.secrets ?? {};
    const missing = Object.keys(wanted).filter((variable) => environment.owner !== owner && given[variable] === undefined);
    if (missing.length > 0)
      throw new PlatformError(
        "request.invalid",
        `${environment.name}@${environment.version} of another publisher needs secrets as ${missing.join(", ")}; name yours in 'secrets' of the request, for example { "${missing[0]}": "name-of-your-secret" }, or with aenv instance create --secret ${missing[0]}=name-of-your-secret`,
      );
    const values: Record<string, string> = {};
    for (const [variable, secret] of Object.entries({ ...wanted, ...given })) {
      const problem = variableProblem(variable, "", given[variable] === undefined ? "publisher" : "caller");
      if (problem !== null) throw new PlatformError("request.invalid", `secrets: ${problem}`);
      values[variable] = await this.read(owner, secret);
    }
    return values;
  }

  /** The value of a secret of this owner. */
  async read(owner: string, secret: string): Promise<string> {
    const folder = encodeURIComponent(owner).replace(/^\.+$/, "");
    const fail = (why: string, cause?: unknown) =>
      new PlatformError("request.invalid", `the secret '${secret}' of ${owner} ${why}`, cause === undefined ? {} : { cause });
    if (this.#folder === null) throw fail("cannot be used: this server has no secrets; its operator can set secretsDir");
    if (folder === "") throw fail("cannot be used: this owner's name is no name of a folder");
    let value: string;
    try {
      value = await readFile(join(this.#folder, folder, secret), "utf8");
    } catch (error) {
      // The cause names a path of the server, so it is not passed on.
      if ((error as NodeJS.ErrnoException).code === "ENOENT")
        throw fail(`does not exist; its operator adds it as the file ${folder}/${secret} in secretsDir`);
      throw fail("cannot be read by this server; its operator has to check the file's permissions");
    }
    if (value.length > MAX_BYTES) throw fail(`is longer than ${MAX_BYTES} bytes`);
    if (value.includes("\0")) throw fail("contains a NUL byte, which no environment variable can contain");
    return value.replace(/\r?\n$/, "");
  }
}
