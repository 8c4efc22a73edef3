import { text } from "../../core/tools/parameters.ts";

/** Parameters of several tools. */
export const orderId = text("The order's id with its leading '#', such as '#W0000000'.");
export const userId = text("The user's id, such as 'sara_doe_496'.");
export const differenceMethodId = text(
  "The user's payment method that pays the price difference or gets it back, such as 'credit_card_0000000'; user and order details name them.",
);

export const address = {
  address1: text("Street and number, such as '123 Main St'."),
  address2: text("What the second line says, such as 'Apt 1'; may be ''."),
  city: text("The city, such as 'San Francisco'."),
  state: text("The state in short, such as 'CA'."),
  country: text("The country, such as 'USA'."),
  zip: text("The zip code, such as '12345'."),
};
