import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import { copyFile, mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import type { LayerStore, RootFiles } from "@aenv/sandbox";

const run = promisify(execFile);
const sources = fileURLToPath(new URL("program", import.meta.url));

/** The path of the program in the image. */
export const PROGRAM = "/program";

/** An image with one static program, so that starting it measures the sandbox and not the program. */
export class BenchImage implements AsyncDisposable {
  readonly #folder: string;
  readonly #digest: string;

  private constructor(folder: string, digest: string) {
    this.#folder = folder;
    this.#digest = digest;
  }

  static async build(): Promise<BenchImage> {
    const folder = await mkdtemp(join(tmpdir(), "aenv-bench-image-"));
    const path = join(folder, "program");
    await run("go", ["build", "-trimpath", "-ldflags", "-s -w", "-o", path, "."], {
      cwd: sources,
      env: { ...process.env, CGO_ENABLED: "0" },
    });
    return new BenchImage(
      folder,
      createHash("sha256")
        .update(await readFile(path))
        .digest("hex"),
    );
  }

  /** The files of the image, for the oci engine. */
  readonly files = async (layers: LayerStore): Promise<RootFiles> => {
    const id = `sha256:${this.#digest}`;
    await layers.add(id, (files) => copyFile(join(this.#folder, "program"), join(files, "program")));
    return { layers: [id], config: null };
  };

  /** Imports the image into Docker and returns its name. */
  async importInto(socket: string): Promise<string> {
    await run("tar", ["-cf", "image.tar", "program"], { cwd: this.#folder });
    const name = "aenv-bench:1";
    await run("docker", ["-H", `unix://${socket}`, "import", join(this.#folder, "image.tar"), name]);
    return name;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await rm(this.#folder, { recursive: true, force: true });
  }
}
