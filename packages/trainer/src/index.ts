export { openTrainerServices } from "./services.ts";
