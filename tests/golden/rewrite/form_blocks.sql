-- Statistics of blocks of units: a unit changes one block in each group that it reaches.

-- case: in one group
SELECT BLOCKWISE(mad(cost), 0, 5000, blocks => 10) FROM visits
---- rewritten
Gather
  SumBlocks b1: 10 blocks, 0 to 5000 in 1048576 steps: a1 of a1 = mad(x1 in steps of 1/2, 0 to 10000)
    Project x1 = cost
      Scan visits (unit patient_id)
        - cost, double [0, 5000], grid 1/2
---- privacy
b1: l1 1048576, l2² 1099511627776, linf 1048576; grid 625/131072; gaussian 5.21852e+06; rho 0.0201871, delta 0
loss: rho 0.0201871, delta 0

-- case: keys that a unit may have several of are counted
SELECT kind, BLOCKWISE(skewness(cost), -1, 1, blocks => 10) FROM visits GROUP BY kind
---- rewritten
_r1:
Gather by k1 text
  - listed k1, 2 groups: 'urgent', 'planned'
  SumBlocks b1 by k1: 10 blocks, -1 to 1 in 1048576 steps: a1 of a1 = skewness(x1 in steps of 1/2, 0 to 10000)
    Project k1 = kind, x1 = cost
      Filter not (kind is null)
        Scan visits (unit patient_id)
          - kind, text of 'urgent', 'planned'
          - cost, double [0, 5000], grid 1/2
_r1_groups:
Gather by k1 text
  - listed k1, 2 groups: 'urgent', 'planned'
  Sum by k1
    - rows: rows
    Weigh each unit as at most 1 rows, l2 norm by k1
      Project k1 = kind
        Filter not (kind is null)
          Scan visits (unit patient_id)
            - kind, text of 'urgent', 'planned'
---- privacy
_r1:
b1: l1 2097152, l2² 2199023255552, linf 1048576; grid 1/524288; gaussian 7.77931e+06; rho 0.0181684, delta 0
loss: rho 0.0181684, delta 0
_r1_groups:
rows: l1 131072, l2² 4294967296, linf 65536; grid 1/65536; gaussian 1.0314e+06; rho 0.00201871, delta 0
loss: rho 0.00201871, delta 0

-- case: the median of the blocks
SELECT BLOCKWISE(mad(cost), 0, 5000, blocks => 10, combine => 'median') FROM visits
---- rewritten
Gather by bin bigint
  - listed bin: from 0 to 4096
  CountBlocks blocks by bin: 10 blocks, 0 to 5000 in 4096 steps: a1 of a1 = mad(x1 in steps of 1/2, 0 to 10000)
    Project x1 = cost
      Scan visits (unit patient_id)
        - cost, double [0, 5000], grid 1/2
---- privacy
Rank(fraction=Fraction(1, 2)): exponential 4.97677, a row is 1
loss: epsilon 0.401867, rho 0.0201871, delta 0

-- case: keys that are selected and not the unit's
SELECT ward, BLOCKWISE(mad(cost), 0, 5000) FROM visits GROUP BY ward
---- error
ERROR 0A000 (UnboundedContribution):  a privacy unit may be in any number of the groups asked for, and changes a block in each of them
LINE 1: SELECT ward, BLOCKWISE(mad(cost), 0, 5000) FROM visits GROUP BY ward
                     ^
HINT:  Group by keys that depend on the unit alone, or whose values are declared: BLOCKWISE has no cap.
