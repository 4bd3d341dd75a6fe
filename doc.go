// Package ibweave compiles an InfiniBand fabric into forwarding tables, verifies them, and
// writes the files that OpenSM loads. It is supported, and so are the packages whose types
// it uses: fabric, lft, mft, state, verify and compile.
//
// A fabric is read once and never changes:
//
//	f, err := ibweave.ReadFabric("fabric.ibnetdiscover")
//
// An engine routes it; [Engines] lists them. What comes back is verified already:
//
//	r, err := ibweave.Compile(ctx, f, "updn", compile.Options{})
//	if r.Verify.Fails(verify.Error) {
//		// r.Verify.Findings has the reasons, each with its witness.
//	}
//	files, err := ibweave.Write(ctx, "tables", r, ibweave.WriteOptions{})
//
// Tables from elsewhere, in a folder of dumps say, are verified in the same way, and a path is
// asked for by its ends:
//
//	s, err := ibweave.Open(ctx, "/var/log/opensm")
//	result, err := ibweave.Verify(ctx, s, verify.Options{})
//	hops, err := ibweave.Path(s.Fabric, s.Tables, source, destination)
//
// # Conventions
//
// No function logs or panics, and the result does not depend on the number of CPUs. Errors
// in an input are *fabric.ParseError, with file and line. Functions that take a context
// return its error soon after it ends. All values may be used by several goroutines at the
// same time as long as none changes them.
//
// The command ibweave does more; its other packages make no promise to other modules.
package ibweave
