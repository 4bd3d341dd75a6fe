package cli

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime/debug"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/files"
	"github.com/ibweave/ibweave/internal/text"
)

// Output has standard output and standard error of a program.
type Output struct {
	Stdout, Stderr io.Writer // what is not printable is escaped
	Exact          *Remember // standard output as it is
	Screen         io.Writer // standard error as it is
	terminal       io.Writer // standard output without its errors
	Log            *zap.Logger
	Command        *cobra.Command // the one that is meant
	results, notes *Paper         // what is behind Stdout and Stderr
}

// NewOutput returns the output of a program on its standard output and standard error.
func NewOutput(stdout, stderr io.Writer) Output {
	exact := &Remember{To: stdout}
	results, notes := NewPaper(exact), NewPaper(stderr)
	return Output{
		Stdout: &Printable{To: results}, Stderr: &Printable{To: notes}, Exact: exact, Screen: stderr,
		terminal: stdout, results: results, notes: notes,
	}
}

// Define has all commands of a program write to o as --log-level, --log-format and --color say.
// check judges a command line beside these.
func (o *Output) Define(root *cobra.Command, level, format, color *string, check func(cmd *cobra.Command) error) {
	o.Command = root
	root.PersistentPreRunE = func(cmd *cobra.Command, _ []string) (err error) {
		o.Command = cmd
		if err = o.notes.Set(o.Screen, *color); err != nil {
			return err
		}
		// Documents for programs stay as they are.
		if f := cmd.Flags().Lookup("format"); f == nil || f.Value.String() == "text" {
			if err = o.results.Set(o.terminal, *color); err != nil {
				return err
			}
		}
		if o.Log, err = OpenLog(o.Screen, *level, *format); err != nil {
			return err
		}
		return check(cmd)
	}
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		o.Command = cmd
		return FlagError(cmd, err)
	})
	root.SetOut(o.Exact)
	root.SetHelpFunc(func(cmd *cobra.Command, _ []string) {
		_, _ = io.WriteString(cmd.OutOrStdout(), Help(cmd)) // Exact has the error
	})
}

// WriteFile writes a whole file at once, or to standard output for "-".
func (o *Output) WriteFile(name string, data []byte) error {
	write := func(w io.Writer) error {
		_, err := w.Write(data)
		return err
	}
	if name == "-" {
		return write(o.Exact)
	}
	return files.Write(name, write)
}

// Run runs the commands of a program, reports their error, and returns its exit status, which is
// Environment if standard output could not be written (a pipe that is closed ends the process,
// as it does other tools). running is true once the command line makes sense. SIGINT and SIGTERM
// end what is under way in good order; a second one ends the process at once.
func (o *Output) Run(args []string, start func(context.Context) *cobra.Command, running *bool, status func(error) int, report func(error)) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop)

	root := start(ctx)
	root.SetArgs(args)
	root.SetErr(o.Stderr)
	err := files.WithMaps(func() error { return root.ExecuteContext(ctx) })
	o.Stdout.(*Printable).End()
	_ = o.results.End() // Exact has the error
	switch {
	case err == nil:
	case !*running: // cobra's own errors have no type
		err = NewUsageError(err)
	case ctx.Err() != nil:
		err = fmt.Errorf("%w: %w", context.Canceled, err)
	}
	if status := status(err); o.Exact.Err != nil && (status == Clean || status == Findings) {
		err = o.Exact.Err // what was to be said was not
	}
	report(err)
	o.Stderr.(*Printable).End()
	_ = o.notes.End()
	return status(err)
}

// Remember keeps the first error of a writer and drops what comes after it. Its caller
// asks for Err at the end: cobra prints or drops such errors.
type Remember struct {
	To  io.Writer
	Err error
}

func (r *Remember) Write(p []byte) (int, error) {
	if r.Err == nil {
		_, r.Err = r.To.Write(p)
	}
	return len(p), nil
}

// Printable passes text of people and JSON on to a terminal: names, lines of input and
// names of files are in it, and none of them may act on the terminal.
type Printable struct {
	To   io.Writer
	mu   sync.Mutex
	rest []byte // the beginning of a character
	out  []byte
}

func (p *Printable) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	all := b
	if len(p.rest) > 0 {
		all = append(p.rest, b...)
	}
	var rest []byte
	p.out, rest = text.AppendPrintable(p.out[:0], all)
	p.rest = append([]byte(nil), rest...)
	_, err := p.To.Write(p.out)
	return len(b), err
}

// End writes the rest of text that ends within a character.
func (p *Printable) End() {
	if len(p.rest) > 0 {
		_, _ = io.WriteString(p.To, fabric.Printable(string(p.rest)))
		p.rest = nil
	}
}

// Printed is write for a file of text or JSON, which is printable there as on standard output.
func Printed(write func(io.Writer) error) func(io.Writer) error {
	return func(w io.Writer) error {
		p := &Printable{To: w}
		defer p.End()
		return write(p)
	}
}

// WatchMemory ends the process when it takes more memory than there is for it, before
// the system does that without a word: of all memory that it has or may still have,
// an eighth stays. What was being written is left to the next command, as after a crash.
func WatchMemory(stderr io.Writer, program string) {
	const worthLooking = 256 << 20
	for range time.Tick(20 * time.Millisecond) {
		has := files.Resident()
		if has < worthLooking {
			continue
		}
		if all := has + files.Available(); has > all/8*7 {
			fmt.Fprintf(stderr, "%s: the input takes more than %s of memory, seven eighths of what there is; want a smaller input, or a machine with more memory\n",
				program, files.Size(all/8*7))
			os.Exit(Input)
		}
	}
}

// OpenLog returns the log of --log-level and --log-format on a screen. The error names the valid
// values.
func OpenLog(screen io.Writer, level, format string) (*zap.Logger, error) {
	at, err := zapcore.ParseLevel(level)
	if err != nil {
		return nil, fmt.Errorf("--log-level %q: want debug, info, warn or error", level)
	}
	var encoder zapcore.Encoder
	switch format {
	case "console":
		encoder = zapcore.NewConsoleEncoder(zap.NewDevelopmentEncoderConfig())
	case "json":
		encoder = zapcore.NewJSONEncoder(zap.NewProductionEncoderConfig())
	default:
		return nil, fmt.Errorf("--log-format %q: want console or json", format)
	}
	return zap.New(zapcore.NewCore(encoder, zapcore.Lock(zapcore.AddSync(&Printable{To: screen})), at)), nil
}

// Revision is " (0123456789ab)" with the commit that was built, and
// "modified" if the tree was.
func Revision() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	commit, modified := "", ""
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			commit = s.Value[:min(12, len(s.Value))]
		case "vcs.modified":
			if s.Value == "true" {
				modified = ", modified"
			}
		}
	}
	if commit == "" {
		return ""
	}
	return " (" + commit + modified + ")"
}
