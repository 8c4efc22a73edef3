import { TaskLibrary } from "../environment/library.ts";
import { imagesOfTask, type TaskImage } from "../images/images.ts";

export { results } from "./results.ts";

/** The images that tasks need, by task id. Tasks that cannot be played need none. */
export async function imagesOf(dataFolder: string, taskIds?: readonly string[]): Promise<ReadonlyMap<string, readonly string[]>> {
  const found = await taskImages(dataFolder, taskIds);
  return new Map([...found].map(([id, images]) => [id, images.map(({ image }) => image)]));
}

/** How the images with a Dockerfile are built. */
export async function imageSources(
  dataFolder: string,
  taskIds?: readonly string[],
): Promise<readonly { readonly image: string; readonly context: string; readonly dockerfile: string }[]> {
  const found = new Map<string, { readonly image: string; readonly context: string; readonly dockerfile: string }>();
  for (const images of (await taskImages(dataFolder, taskIds)).values())
    for (const { image, build } of images) if (build !== null) found.set(image, { image, ...build });
  return [...found.values()];
}

async function taskImages(dataFolder: string, taskIds?: readonly string[]): Promise<ReadonlyMap<string, readonly TaskImage[]>> {
  const library = await TaskLibrary.open(dataFolder, process.env.TERMINAL_BENCH_DATASET || null);
  const prefix = process.env.TERMINAL_BENCH_IMAGES ?? "";
  const found = new Map<string, readonly TaskImage[]>();
  for (const id of taskIds ?? library.ids) {
    const images = await library
      .get(id)
      .then(
        (task) => imagesOfTask(task, prefix),
        () => [],
      )
      .catch(() => []);
    found.set(id, images);
  }
  return found;
}
