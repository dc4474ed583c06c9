-- What the plan proves needs no cap of the owner.

-- case: units in listed groups
-- schema: uncapped
SELECT device, COUNT(DISTINCT user_id) FROM clicks GROUP BY device
---- rewritten
Gather by k1 text
  - listed k1, 2 groups: 'phone', 'desk'
  CountUnits units by k1: units
    Project k1 = device
      Filter not (device is null)
        Scan clicks (unit user_id)
          - device, text of 'phone', 'desk'
---- privacy
units: l1 2, l2² 2, linf 1; grid 1; gaussian 7.03822; rho 0.0201871, delta 0
loss: rho 0.0201871, delta 0

-- case: a key that depends on the unit is one group
-- schema: uncapped
SELECT country, COUNT(*) FROM users GROUP BY country
---- rewritten
Gather by k1 text
  - selected k1: by selection_units
  CountUnits selection_units by k1: rows, one per unit
    Project k1 = country
      Scan users (unit user_id, one row per unit)
        - country, text
  Sum by k1
    - rows: rows
    Project k1 = country
      Scan users (unit user_id, one row per unit)
        - country, text
---- privacy
selection selection_units: Gaussian threshold, at most 1 keys, scale 11.1722, above 64; rho 0.00400583, delta 6.51608e-09
rows: l1 1, l2² 1, linf 1; grid 1; gaussian 5.5861; rho 0.0160233, delta 0
loss: rho 0.0200291, delta 6.51608e-09

-- case: an analyst's own cap where the owner sets none
-- schema: uncapped
-- set: contributions.rows = 5
SELECT COUNT(*) FROM clicks
---- rewritten
Gather
  Sum
    - rows: rows
    Weigh each unit as at most 5 rows, l2 norm
      Project
        Scan clicks (unit user_id)
---- privacy
rows: l1 327680, l2² 107374182400, linf 327680; grid 1/65536; gaussian 1.63079e+06; rho 0.0201871, delta 0
loss: rho 0.0201871, delta 0
