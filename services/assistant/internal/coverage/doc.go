// Package coverage records what an answer examined: objects, kinds, logs, metrics, and the rules for each symptom that
// a question names. From that record alone it decides whether nothing was found wrong.
//
// A Record starts with everything open: unread logs, kinds that could not be listed, symptoms without a rule and names
// without an object are gaps until something closes them. [Verdict] is the only function that states that nothing is
// wrong, and it does so only without findings and without gaps. A test keeps the sentence out of all other code.
package coverage
