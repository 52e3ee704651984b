// Package cost records what jobs used, prices it and estimates its emissions.
//
// Hours and money are decimals with six places in the store, so sums are exact in any order of their rows; one record
// is rounded once, half away from zero, when it is made. Answers carry sums unrounded and quotients, kWh and grams to
// six places: rounding for display is left to the client.
//
// A record is priced at the rates in force when it was last reported. Energy and emissions are computed per request, so
// they always agree with the rates that the methodology names.
package cost

import (
	"fmt"
	"math"
	"strconv"
)

// uncertainty of energy and emissions, relative: ± 30 %.
const uncertainty = 0.30

// scope of the emissions: operation only, without manufacture.
const scope = "operational"

// Schedulers whose jobs are priced and recorded differently from Slurm's.
const (
	flux = "flux"
	mock = "mock"
)

// Rates convert hours to money, energy and emissions. All are finite and not negative.
type Rates struct {
	GPUHourUSD      float64 // one GPU for one hour
	CPUHourUSD      float64 // one core for one hour
	GPUWatts        float64 // mean power of an allocated GPU
	CoreWatts       float64 // mean power of an allocated core
	PUE             float64 // power drawn by the facility per power used by its computers
	GridGramsPerKWh float64 // CO2e of the grid's average kWh
}

// USD returns the price of a job. Slurm's GPU hours include the share of their node's cores; Flux allocates the two
// separately, so both are paid. The mock scheduler's invented figures are priced like Slurm's.
func (r Rates) USD(scheduler string, gpuHours, cpuHours float64) float64 {
	usd := gpuHours * r.GPUHourUSD
	if scheduler == flux {
		usd += cpuHours * r.CPUHourUSD
	}
	return Round(usd)
}

// Energy is an estimate.
type Energy struct {
	KWh   float64
	CO2eG float64 // grams
}

// Energy estimates energy and emissions of GPU hours and core hours.
func (r Rates) Energy(gpuHours, coreHours float64) Energy {
	kwh := (gpuHours*r.GPUWatts + coreHours*r.CoreWatts) / 1000 * r.PUE
	return Energy{KWh: Round(kwh), CO2eG: Round(kwh * r.GridGramsPerKWh)}
}

// Methodology describes how Energy is computed, with the values in force.
func (r Rates) Methodology() string {
	n := func(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }
	return fmt.Sprintf("An estimate from the allocated share of GPUs and cores, not a measurement: "+
		"kWh = (GPU hours x %s W + core hours x %s W) / 1000 x PUE %s; grams CO2e = kWh x %s g/kWh. "+
		"Memory, network, idle power and manufacture are not counted; the grid's factor is its average, not hourly. Uncertainty ± %s %%.",
		n(r.GPUWatts), n(r.CoreWatts), n(r.PUE), n(r.GridGramsPerKWh), n(math.Round(uncertainty*100)))
}

// roundingFactor is 10^6: the precision of hours, money, kWh and grams.
const roundingFactor = 1e6

// Round returns v rounded to six places, half away from zero.
func Round(v float64) float64 { return math.Round(v*roundingFactor) / roundingFactor }
