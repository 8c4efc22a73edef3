import type { ImageSource } from "@aenv/kit";
import type { EngineName } from "@aenv/sandbox/engines";
import { type Command, Option } from "commander";
import { addDataOptions, type DataOptions } from "../../bench/data-options.ts";
import { openDataset } from "../../bench/dataset.ts";
import type { Missing, NeededImage } from "../../bench/images.ts";
import { loadBenchModule } from "../../bench/module.ts";
import { examples } from "../../options/examples.ts";
import { collect, collectPair } from "../../options/pairs.ts";
import { getBenchmark } from "../../project/benchmarks.ts";
import { imageEngines } from "../../rollout/engine-option.ts";
import { Failure } from "../../terminal/failure.ts";
import { createPrinter, type Printer } from "../../terminal/printer.ts";
import { countText, table } from "../../terminal/table.ts";
import type { Terminal } from "../../terminal/terminal.ts";

interface Options extends DataOptions {
  readonly task?: readonly string[];
  readonly engine: EngineName;
  readonly pull?: boolean;
  readonly build?: boolean;
  readonly buildArg?: Readonly<Record<string, string>>;
  readonly load?: Readonly<Record<string, string>>;
  readonly json?: boolean;
}

export function define(command: Command, terminal: Terminal): void {
  command
    .summary("list, pull, build and load the images of tasks")
    .description(
      "Lists the images that the tasks of a benchmark need and whether the engine has them, and pulls, builds or loads those that are missing. Fails if some are missing in the end.",
    )
    .argument("<name>", "the benchmark, or the folder of a project");
  addDataOptions(command)
    .option("-t, --task <id>", "only the images of this task; may be repeated", collect)
    .addOption(new Option("--engine <engine>", "whose images: those of oci, or of the Docker daemon").choices(imageEngines).default("oci"))
    .option("--pull", "pull missing images from their registries")
    .option("--build", "build missing images that have a Dockerfile, with Docker, podman or buildah")
    .option("--build-arg <NAME=VALUE>", "an ARG of the Dockerfiles, for --build; may be repeated", collectPair)
    .option(
      "--load <IMAGE=PATH[:NAME]>",
      "take an image from an archive of docker save or a folder with an OCI layout; may be repeated",
      collectPair,
    )
    .option("--json", "print JSON")
    .addHelpText(
      "after",
      examples(
        "aenv bench images swe-bench --from rows.jsonl",
        "aenv bench images swe-bench --from rows.jsonl --engine docker --pull",
        "aenv bench images terminal-bench --from ./tasks --build",
        "aenv bench images terminal-bench --from ./tasks --build --build-arg BASE=debian:13",
        "aenv bench images terminal-bench --from ./tasks --load example.com/tasks/hello:1=hello.tar",
      ),
    )
    .action((name: string, options: Options) => images(name, options, terminal));
}

async function images(named: string, options: Options, terminal: Terminal): Promise<void> {
  const printer = createPrinter(terminal, options.json === true);
  const benchmark = getBenchmark(named, terminal.cwd);
  const module = await loadBenchModule(benchmark);
  const dataset = await openDataset(benchmark, options, terminal);
  // Loaded only here: engines and the server take long to load.
  const { buildImages, listImages, loadImage, openStore, pullImages } = await import("../../bench/images.ts");
  await using store = await openStore(options.engine, terminal);
  for (const pair of Object.entries(options.load ?? {})) await loadImage(pair, store, terminal);
  const list = () => listImages({ module, dataFolder: dataset.folder, taskIds: options.task, engine: options.engine }, store);
  let found = await list();
  const absent = found.filter(({ isPresent }) => !isPresent);
  const built = options.build === true ? absent.flatMap(({ source }) => (source === null ? [] : withArgs(source, options.buildArg))) : [];
  const pulled = options.pull === true ? absent.map(({ image }) => image).filter((image) => !built.some((one) => one.image === image)) : [];
  const failed = new Map([...(await buildImages(built, store, terminal)), ...(await pullImages(pulled, store, terminal))]);
  if (built.length + pulled.length > 0) found = await list();
  show(found, failed, printer);
  const missing = found.filter(({ isPresent }) => !isPresent);
  if (missing.length === 0) return;
  if (printer.isJson) throw new Failure([]);
  const ways = missing.some(({ source }) => source !== null) ? "--build, --pull or --load IMAGE=PATH" : "--pull or --load IMAGE=PATH";
  throw new Failure(`${missing.length} of ${countText(found.length, "image")} ${missing.length === 1 ? "is" : "are"} missing`, {
    code: "bench.images_missing",
    hint: `Get them with ${ways}.`,
  });
}

function withArgs(source: ImageSource, given: Readonly<Record<string, string>> = {}): ImageSource {
  return { ...source, buildArgs: { ...source.buildArgs, ...given } };
}

function show(found: readonly NeededImage[], failed: Missing, printer: Printer): void {
  printer.json(
    found.map(({ image, tasks, isPresent, source }) => ({
      image,
      tasks,
      isPresent,
      canBeBuilt: source !== null,
      error: failed.get(image) ?? null,
    })),
  );
  const { colors } = printer.output;
  const rows = found.map(({ image, tasks, isPresent, source }) => [
    image,
    String(tasks.length),
    isPresent ? colors.green("present") : colors.yellow(source === null ? "missing" : "missing, can be built"),
  ]);
  printer.print(rows.length === 0 ? "The tasks need no images." : table(["image", "tasks", "state"], rows, printer.output));
  for (const [image, why] of failed) printer.print(`${colors.yellow("!")} ${image}: ${why}`);
}
