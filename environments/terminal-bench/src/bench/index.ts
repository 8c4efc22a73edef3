import { type ImageBuild, imagesOfTask, type TaskImage } from "../compose/images.ts";
import { hasServices } from "../compose/of-task.ts";
import { TaskLibrary } from "../environment/library.ts";
import type { Variables } from "../environment/settings.ts";

export { results } from "./results.ts";

/** The images that tasks need, by task id. Tasks that cannot be played need none, as those with several services on other engines. */
export async function imagesOf(
  dataFolder: string,
  taskIds?: readonly string[],
  engine?: string,
  variables?: Variables,
): Promise<ReadonlyMap<string, readonly string[]>> {
  const found = await taskImages(dataFolder, taskIds, engine, variables);
  return new Map([...found].map(([id, images]) => [id, images.map(({ image }) => image)]));
}

/** How the images with a Dockerfile are built. */
export async function imageSources(
  dataFolder: string,
  taskIds?: readonly string[],
  engine?: string,
  variables?: Variables,
): Promise<readonly (ImageBuild & { readonly image: string })[]> {
  const found = new Map<string, ImageBuild & { readonly image: string }>();
  for (const images of (await taskImages(dataFolder, taskIds, engine, variables)).values())
    for (const { image, build } of images) if (build !== null) found.set(image, { image, ...build });
  return [...found.values()];
}

/** The engine that has private networks. */
const COMPOSE_ENGINE = "docker";

async function taskImages(
  dataFolder: string,
  taskIds: readonly string[] | undefined,
  engine = COMPOSE_ENGINE,
  own: Variables = {},
): Promise<ReadonlyMap<string, readonly TaskImage[]>> {
  const { TERMINAL_BENCH_DATASET: dataset, TERMINAL_BENCH_IMAGES: prefix = "" } = { ...process.env, ...own };
  const library = await TaskLibrary.open(dataFolder, dataset || null);
  const found = new Map<string, readonly TaskImage[]>();
  for (const id of taskIds ?? library.ids) {
    const images = await library
      .get(id)
      .then(
        (task) => (hasServices(task) && engine !== COMPOSE_ENGINE ? [] : imagesOfTask(task, prefix)),
        () => [],
      )
      .catch(() => []);
    found.set(id, images);
  }
  return found;
}
