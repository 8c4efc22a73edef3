import { object } from "../../fields/containers.ts";
import { type Parsed, withDefault } from "../../fields/field.ts";
import { float, int, text } from "../../fields/scalars.ts";

const shape = {
  command: text,
  interval_sec: withDefault(float, 5),
  timeout_sec: withDefault(float, 30),
  start_period_sec: withDefault(float, 0),
  start_interval_sec: withDefault(float, 5),
  retries: withDefault(int, 3),
};

export type HealthcheckConfig = Parsed<typeof shape>;

export const healthcheck = object(shape);
