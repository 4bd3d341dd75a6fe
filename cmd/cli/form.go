package cli

import (
	"io"

	"github.com/spf13/pflag"

	"github.com/ibweave/ibweave/internal/text"
	"github.com/ibweave/ibweave/report"
	"github.com/ibweave/ibweave/verify"
)

// OutputForm is the flag --format of commands that print text or JSON.
type OutputForm struct {
	Format  string
	Metrics string // name of the command in metrics; "" where prometheus is no form
}

// Define defines the flag; with Metrics, prometheus is a form too.
func (o *OutputForm) Define(flags *pflag.FlagSet, usage string) {
	words := []string{"text", "json"}
	if o.Metrics != "" {
		words = append(words, "prometheus")
	}
	o.Format = "text"
	WordFlag(flags, &o.Format, "format", usage, words...)
}

// DefineMetrics is Define for a command that writes metrics, too.
func (o *OutputForm) DefineMetrics(flags *pflag.FlagSet, command string) {
	o.Metrics = command
	o.Define(flags, "`FORM` of the output: text, json, or prometheus: metrics as node_exporter's textfile collector reads them")
}

// IsMetrics returns true with --format prometheus.
func (o *OutputForm) IsMetrics() bool { return o.Format == "prometheus" }

// IsJSON returns true with --format json.
func (o *OutputForm) IsJSON() bool { return o.Format == "json" }

// Print prints a document as JSON, or its text, which is written at once.
func (o *OutputForm) Print(w io.Writer, document any, write func(b *text.Sheet)) error {
	if o.IsJSON() {
		return report.JSON(w, document)
	}
	var b text.Sheet
	write(&b)
	_, err := w.Write(b.Bytes())
	return err
}

// Threshold is the flag --fail-on.
type Threshold struct{ failOn string }

// FailOnUsage is the usage of --fail-on where there is no more to say.
const FailOnUsage = "exit with 1 for findings from `SEVERITY` on: error, warning, note or never"

// Define defines the flag.
func (t *Threshold) Define(flags *pflag.FlagSet, usage string) {
	t.failOn = "error"
	WordFlag(flags, &t.failOn, "fail-on", usage, "error", "warning", "note", "never")
}

// Never returns true with --fail-on never.
func (t *Threshold) Never() bool { return t.failOn == "never" }

// At returns the least severity that fails; it has no meaning where Never is true.
func (t *Threshold) At() (s verify.Severity) {
	_ = s.UnmarshalText([]byte(t.failOn)) // Never is none
	return s
}

// CheckWorst is ErrFindings if the worst finding is at or above the threshold.
func (t *Threshold) CheckWorst(worst verify.Severity) error {
	return FindingsIf(!t.Never() && worst >= t.At())
}

// FindingsIf returns ErrFindings if something was found.
func FindingsIf(found bool) error {
	if found {
		return ErrFindings
	}
	return nil
}
