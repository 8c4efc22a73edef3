import { attributeError, valueError } from "@aenv/benchmark";
import { isOrdered } from "../../python/equality.ts";
import { elementsOf, itemAt } from "../../python/sequences.ts";
import { typeName } from "../../python/values/types.ts";
import type { PyValue } from "../../python/values/values.ts";
import { type FlightDb, type FlightInfo, ReservationFlight } from "./model.ts";
import { availableDayOf, getFlight } from "./records.ts";

/** Price in dollars of each bag that is not free. */
export const BAG_PRICE = 50;

/** A flight at its current price, if it has enough seats. The same flight given twice is checked separately. */
export function fareOf(db: FlightDb, { flight_number, date }: FlightInfo, cabin: PyValue, seatsNeeded: number): ReservationFlight {
  const flight = getFlight(db, flight_number);
  const day = availableDayOf(flight, flight_number, date);
  if (isOrdered(itemAt(day.available_seats, cabin), "<", seatsNeeded)) {
    throw valueError(`Not enough seats on flight ${flight_number}`);
  }
  const { origin, destination } = flight;
  return ReservationFlight.create({ flight_number, origin, destination, date, price: itemAt(day.prices, cabin) });
}

/** The error that the reference raises for flights that were not converted into records. */
export function unreadFlights(argument: PyValue): Error {
  const [first = null] = elementsOf(argument);
  return attributeError(typeName(first), "flight_number");
}
