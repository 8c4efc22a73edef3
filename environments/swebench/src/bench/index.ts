export { grading } from "./grading.ts";
export { imageSources, imagesOf } from "./images.ts";
export { results } from "./results.ts";
