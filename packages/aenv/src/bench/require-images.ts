import type { BenchModule } from "@aenv/kit";
import { DEFAULT_ENGINE, type EngineName, engines } from "@aenv/sandbox/engines";
import type { Benchmark } from "../project/benchmarks.ts";
import { Failure } from "../terminal/failure.ts";
import type { Terminal } from "../terminal/terminal.ts";
import type { Dataset } from "./dataset.ts";
import type { NeededImage } from "./images.ts";

const SHOWN = 20;

export interface RequiredImages {
  readonly benchmark: Benchmark;
  readonly module: BenchModule;
  readonly dataset: Dataset;
  readonly engine: EngineName | undefined;
  readonly taskIds: readonly string[];
  /** Variables of the run's instances. */
  readonly variables?: Readonly<Record<string, string>>;
}

/** Pulls the images of tasks that the engine lacks. Throws before anything is played if some cannot be had, and names them all. */
export async function requireImages(required: RequiredImages, terminal: Terminal): Promise<void> {
  const { benchmark, module, dataset, engine = DEFAULT_ENGINE, taskIds, variables = {} } = required;
  const { name } = benchmark;
  const needed = await module.imagesOf?.(dataset.folder, taskIds, undefined, variables);
  if (needed === undefined || ![...needed.values()].some((images) => images.length > 0)) return;
  if (engines[engine].openImages === undefined)
    throw new Failure(`the tasks of ${name} run in images, which the engine ${engine} cannot run`, {
      exit: "usage",
      hint: `Choose an engine that can, which needs Docker or, on Linux as root, runc: aenv bench run ${name} --engine oci`,
    });
  // Loaded only here: engines and the server take long to load.
  const { listImages, openStore, pullImages } = await import("./images.ts");
  await using store = await openStore(engine, terminal);
  const all = await listImages({ module, dataFolder: dataset.folder, taskIds, engine, variables }, store);
  const absent = all.filter(({ isPresent }) => !isPresent);
  if (absent.length === 0) return;
  const isPulled = ({ image, source }: NeededImage) => source === null || hasRegistry(image);
  const missing = new Map([
    ...absent.filter((one) => !isPulled(one)).map(({ image }) => [image, "it is not built"] as const),
    ...(await pullImages(
      absent.filter(isPulled).map(({ image }) => image),
      store,
      terminal,
    )),
  ]);
  if (missing.size === 0) return;
  const shown = [...missing].slice(0, SHOWN).map(([image, why]) => ({ message: `${image}: ${why}` }));
  const rest = missing.size > SHOWN ? [{ message: `and ${missing.size - SHOWN} more` }] : [];
  throw new Failure([{ message: `${missing.size} images of ${name} are missing, so nothing was started` }, ...shown, ...rest], {
    code: "bench.images_missing",
    hint: `Pull, build or load them with: aenv bench images ${name} --engine ${engine} --build, or --load IMAGE=ARCHIVE`,
  });
}

/** Whether the name says where the image is, as `registry.example.com/team/image:tag` does. */
function hasRegistry(image: string): boolean {
  const [host = "", ...path] = image.split("/");
  return path.length > 0 && /[.:]|^localhost$/.test(host);
}
