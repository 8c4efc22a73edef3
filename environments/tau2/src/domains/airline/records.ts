import { valueError } from "@aenv/benchmark";
import { lookup } from "../../python/equality.ts";
import type { Model } from "../../python/model/model.ts";
import { str } from "../../python/repr.ts";
import { elementsOf } from "../../python/sequences.ts";
import { Dict, type PyValue } from "../../python/values/values.ts";
import type { AvailableDay, Flight, FlightDb, Reservation, User } from "./model.ts";

export function getUser(db: FlightDb, id: PyValue): User {
  return found(db.users.find(id), `User ${str(id)} not found`);
}

export function getReservation(db: FlightDb, id: PyValue): Reservation {
  return found(db.reservations.find(id), `Reservation ${str(id)} not found`);
}

export function getFlight(db: FlightDb, number: PyValue): Flight {
  return found(db.flights.find(number), `Flight ${str(number)} not found`);
}

/** The same records, for editing. */
export function editUser(db: FlightDb, id: PyValue): User {
  return found(db.users.edit(id), `User ${str(id)} not found`);
}

export function editReservation(db: FlightDb, id: PyValue): Reservation {
  return found(db.reservations.edit(id), `Reservation ${str(id)} not found`);
}

/** The status of a flight on a date. */
export function dayOf(flight: Flight, number: PyValue, date: PyValue): FlightDay {
  return found(lookup(flight.dates, date), `Flight ${str(number)} not found on date ${str(date)}`);
}

export type FlightDay = Flight["dates"] extends Dict<infer Day> ? Day : never;

/** The status of a flight that can be booked on a date. */
export function availableDayOf(flight: Flight, number: PyValue, date: PyValue): AvailableDay {
  const day = dayOf(flight, number, date);
  if (day.status !== "available") throw valueError(`Flight ${str(number)} not available on date ${str(date)}`);
  return day;
}

function found<T>(record: T | undefined, complaint: string): T {
  if (record === undefined) throw valueError(complaint);
  return record;
}

/**
 * The records of a list argument; null if an element is not a dict, because then the reference does not convert the argument.
 * Any falsy value, even an empty string, is an empty list.
 */
export function recordsOf<M extends Model>(argument: PyValue, model: M): ReturnType<M["create"]>[] | null {
  const elements = [...elementsOf(argument)];
  if (!elements.every((element) => element instanceof Dict)) return null;
  return elements.map((element) => model.create(element) as ReturnType<M["create"]>);
}
