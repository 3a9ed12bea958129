package guest

import (
	"context"
	"encoding/json"
	"runtime"
	"time"
	"unsafe"

	"github.com/skillhost/skill/sdk"
)

//go:wasmimport skill start
func hostStart(ptr unsafe.Pointer, n uint32) int32

//go:wasmimport skill wait
func hostWait(handles unsafe.Pointer, n uint32, ms int32) int32

//go:wasmimport skill take
func hostTake(handle int32, off uint32, buf unsafe.Pointer, n uint32) int32

//go:wasmimport skill drop
func hostDrop(handle int32) int32

//go:wasmimport skill emit
func hostEmit(kind int32, ptr unsafe.Pointer, n uint32) int32

//go:wasmimport skill cancelled
func hostCancelled() int32

//go:wasmexport skill_abi_1
func abi1() int32 { return 1 }

// skillCall serves the input frame. The status is 0 whenever a result or an
// error was delivered, and else what the host returned.
//
//go:wasmexport skill_call
func skillCall() int32 {
	p := &port{}
	b, n := p.take(0)
	if n < 0 {
		return n
	}
	reply := answer(p, b)
	n = p.emit(sdk.EmitResult, reply)
	if n == sdk.ErrOverflow {
		n = p.emit(sdk.EmitResult, sdk.AppendError(nil, &sdk.Error{Kind: sdk.Limit, What: "the result is larger than the output limit"}))
	}
	return min(n, 0)
}

func answer(p *port, input []byte) []byte {
	f, err := sdk.ParseFrame(input)
	if err != nil {
		return frame(sdk.Result{}, &sdk.Error{Kind: sdk.Internal, What: "the input frame", Err: err})
	}
	var in sdk.Input
	if err := json.Unmarshal(f.Header, &in); err != nil {
		return frame(sdk.Result{}, &sdk.Error{Kind: sdk.Internal, What: "the input header", Err: err})
	}
	return frame(serve(context.Background(), p, in))
}

const isModule = true

// port is the host as the module imports it. One thread runs all goroutines,
// so a goroutine that waits in the host would stop all others: wait therefore
// blocks only on everything that any goroutine waits for, and for a short time.
type port struct {
	waiting []int32
}

// pause bounds how long sleeping goroutines may be kept waiting, milliseconds.
const pause = 50

// maxWait is how many handles a host waits for at once.
const maxWait = 64

func (p *port) start(b []byte) int32 {
	return hostStart(unsafe.Pointer(unsafe.SliceData(b)), uint32(len(b)))
}

// wait returns the index of a handle that is done and 0, or a negative code:
// sdk.ErrAgain when d is over. A negative d has no end.
func (p *port) wait(handles []int32, d time.Duration) (index int, code int32) {
	p.waiting = append(p.waiting, handles...)
	defer p.forget(handles)
	end := time.Now().Add(d)
	for {
		n := waitFor(handles, 0)
		if n >= 0 {
			return int(n), 0
		}
		if n != sdk.ErrAgain {
			return 0, n
		}
		most := int32(pause)
		if d >= 0 {
			left := time.Until(end)
			if left <= 0 {
				return 0, sdk.ErrAgain
			}
			most = min(most, int32((left+time.Millisecond-1)/time.Millisecond))
		}
		runtime.Gosched() // others may start or take theirs first
		if n := waitFor(p.waiting[:min(len(p.waiting), maxWait)], most); n < 0 && n != sdk.ErrAgain {
			return 0, n
		}
		runtime.Gosched()
	}
}

func waitFor(handles []int32, ms int32) int32 {
	return hostWait(unsafe.Pointer(unsafe.SliceData(handles)), uint32(len(handles)), ms)
}

func (p *port) forget(handles []int32) {
	for _, h := range handles {
		for i, w := range p.waiting {
			if w == h {
				p.waiting = append(p.waiting[:i], p.waiting[i+1:]...)
				break
			}
		}
	}
}

// take returns all of a frame. Most replies are small: one call does it.
func (p *port) take(handle int32) ([]byte, int32) {
	b := make([]byte, 4096)
	n := hostTake(handle, 0, unsafe.Pointer(unsafe.SliceData(b)), uint32(len(b)))
	if n <= int32(len(b)) {
		return b[:max(n, 0)], min(n, 0)
	}
	all := make([]byte, n)
	rest := all[copy(all, b):]
	n = hostTake(handle, uint32(len(b)), unsafe.Pointer(unsafe.SliceData(rest)), uint32(len(rest)))
	return all, min(n, 0)
}

func (p *port) drop(handle int32) { hostDrop(handle) }

func (p *port) emit(kind int32, b []byte) int32 {
	return hostEmit(kind, unsafe.Pointer(unsafe.SliceData(b)), uint32(len(b)))
}

func (p *port) cancelled() bool { return hostCancelled() != 0 }

func (p *port) why() error { return errOver }
